//! `ralph plugin`: installs and removes the plugin that starts loops in clients' sessions.

mod files;
mod hooks_file;
mod json;
mod marketplace;
mod record;
mod settings_file;
mod status;
mod steps;
mod trust;

pub(crate) use status::{PluginStatus, conflicting_plugin, plugin_statuses};

use super::workspace::current_dir;
use crate::cli::plugin::{InstallArgs, PluginCommand, UninstallArgs};
use crate::client::descriptor::{Client, ClientHome, PluginKind, clients};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::os::program;
use crate::process::version;
use crate::process::version::VersionNumbers as ClientVersion;
use crate::store::StateDir;
use crate::ui::print::{print_message, print_output};
use etcetera::BaseStrategy;
use hooks_file::HooksFileInstaller;
use json::PathPart;
use marketplace::MarketplaceInstaller;
use record::InstallRecord;
use std::path::{Path, PathBuf};
use std::{env, fs};
use steps::FileStep;

/// The paths that installing and uninstalling need for every client.
struct PluginContext {
    /// The directory for ralph's own files, such as the plugin and the record of changes.
    root: PathBuf,
    /// The program that hooks call, quoted for a shell.
    program: String,
}

/// The changes to make for one client, and notes to show to the user.
#[derive(Default)]
struct ChangeSet {
    steps: Vec<FileStep>,
    notes: Vec<String>,
}

/// The options for installing the plugin in one client.
#[derive(Clone, Copy)]
struct InstallOptions {
    /// The client's version. `None` if the client is not installed or does not print its version.
    version: Option<ClientVersion>,
    /// Whether to mark the hooks as trusted.
    trust: bool,
}

/// Plans the changes for one client. The methods write nothing. They return steps that describe
/// what to change.
trait PluginInstaller {
    /// Returns the changes that install the plugin.
    fn install(
        &self,
        context: &PluginContext,
        options: InstallOptions,
        record: &mut InstallRecord,
    ) -> Result<ChangeSet, CommandError>;

    /// Returns the changes that uninstall the plugin.
    fn uninstall(
        &self,
        context: &PluginContext,
        record: &mut InstallRecord,
    ) -> Result<ChangeSet, CommandError>;

    /// Returns the status of the plugin.
    fn status(
        &self,
        context: &PluginContext,
        version: Option<ClientVersion>,
    ) -> Result<PluginStatus, CommandError>;

    /// Returns the name of another enabled plugin that reacts to the same stop events. `None` if
    /// there is none.
    fn conflict(&self) -> Option<String> {
        None
    }
}

/// Returns the installer for a client.
fn installer(client: &'static Client) -> Box<dyn PluginInstaller> {
    match &client.plugin {
        PluginKind::Marketplace(spec) => Box::new(MarketplaceInstaller { client, spec }),
        PluginKind::HooksFile(spec) => Box::new(HooksFileInstaller { client, spec }),
    }
}

fn client_home(client: &Client) -> Result<ClientHome, CommandError> {
    client.home().map_err(|error| {
        CommandError::broken(format!(
            "cannot find the settings directory of {}: {error}",
            client.title
        ))
    })
}

pub(crate) fn plugin(command: &PluginCommand) -> Result<ExitCode, CommandError> {
    match command {
        PluginCommand::Install(args) => install(args),
        PluginCommand::Path => print_path(),
        PluginCommand::Uninstall(args) => uninstall(args),
    }
}

/// Returns whether `names` contains this client.
fn is_named(names: &[&'static Client], client: &Client) -> bool {
    names.iter().any(|named| named.name == client.name)
}

fn install(args: &InstallArgs) -> Result<ExitCode, CommandError> {
    let here = current_dir()?;
    let is_installed = |client: &Client| program::find(&client.name, &here).is_some();
    let is_selected = |client: &&Client| {
        is_named(&args.clients, client) || args.clients.is_empty() && is_installed(client)
    };
    let selected: Vec<&'static Client> = clients().iter().filter(is_selected).collect();
    if selected.is_empty() {
        return Err(no_client_installed());
    }
    let names: Vec<&str> = selected.iter().map(|client| &*client.name).collect();
    let Ok(versions) = version::installed_versions(&names, &here) else {
        return Ok(ExitCode::Stopped);
    };
    let context = PluginContext::load()?;
    let mut record = InstallRecord::read(&context.record_path())?;
    let mut all = Vec::new();
    for (client, version) in selected.iter().copied().zip(versions) {
        let options = InstallOptions {
            version,
            trust: args.trust,
        };
        let mut changes = installer(client).install(&context, options, &mut record)?;
        if !is_installed(client) {
            changes.notes.push(format!(
                "{} is not in your PATH; install it to use the plugin",
                client.name
            ));
        }
        all.push((client, version, changes));
    }
    for (client, version, changes) in &all {
        let version = version
            .map(|version| format!(" {}", version::display(version)))
            .unwrap_or_default();
        print_message(&describe_changes(
            &format!("{}{version}", client.title),
            changes,
            "nothing to change: already installed",
        ));
    }
    if args.dry_run {
        return Ok(ExitCode::Success);
    }
    let has_changes = all.iter().any(|(_, _, changes)| !changes.steps.is_empty());
    for (_, _, changes) in &all {
        record.add_created_dirs(&changes.steps);
    }
    // Save the record first, so that even a partial installation can be undone.
    context.save_record(&record)?;
    all.into_iter()
        .try_for_each(|(_, _, changes)| steps::apply(changes.steps))?;
    if has_changes {
        let commands = selected
            .iter()
            .map(|client| format!("{} in {}", client.command("ralph-loop"), client.title));
        print_message(&format!(
            "Installed. In a new session, type {}.\n",
            commands.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(ExitCode::Success)
}

fn no_client_installed() -> CommandError {
    let names: Vec<&str> = clients().iter().map(|client| &*client.name).collect();
    CommandError::usage(
        format!("neither {} is installed", names.join(" nor ")),
        format!(
            "install one of them, or name the client to install the plugin anyway: run `ralph plugin install {}`",
            names[0]
        ),
    )
}

fn print_path() -> Result<ExitCode, CommandError> {
    let marketplace = clients().iter().find_map(|client| match &client.plugin {
        PluginKind::Marketplace(spec) => Some(MarketplaceInstaller { client, spec }),
        PluginKind::HooksFile(_) => None,
    });
    let installer = marketplace
        .ok_or_else(|| CommandError::broken("no client loads the plugin from a directory"))?;
    let Ok(versions) = version::installed_versions(&[&installer.client.name], &current_dir()?)
    else {
        return Ok(ExitCode::Stopped);
    };
    let (dir, step) = installer.plugin_dir(&PluginContext::load()?, versions[0]);
    steps::apply(step.into_iter().collect())?;
    print_output(&format!("{}\n", dir.display()))?;
    Ok(ExitCode::Success)
}

fn uninstall(args: &UninstallArgs) -> Result<ExitCode, CommandError> {
    let context = PluginContext::load()?;
    let mut record = InstallRecord::read(&context.record_path())?;
    let mut all = Vec::new();
    for client in clients()
        .iter()
        .filter(|client| args.clients.is_empty() || is_named(&args.clients, client))
    {
        let changes = installer(client).uninstall(&context, &mut record)?;
        all.push((client, changes));
    }
    for (client, changes) in &all {
        print_message(&describe_changes(
            &client.title,
            changes,
            "nothing to remove: not installed",
        ));
    }
    if args.dry_run {
        return Ok(ExitCode::Success);
    }
    all.into_iter()
        .try_for_each(|(_, changes)| steps::apply(changes.steps))?;
    context.save_record(&record)?;
    record.remove_created_dirs();
    if !record.is_empty() {
        context.save_record(&record)?;
    }
    Ok(ExitCode::Success)
}

fn describe_changes(title: &str, changes: &ChangeSet, if_empty: &str) -> String {
    let mut lines = vec![title.to_owned()];
    lines.extend(changes.steps.is_empty().then(|| format!("  {if_empty}")));
    lines.extend(steps::describe(&changes.steps));
    lines.extend(changes.notes.iter().map(|note| format!("  note    {note}")));
    lines.join("\n") + "\n"
}

/// Returns a JSON path that consists of object keys.
fn keys(names: &[&str]) -> Vec<PathPart> {
    names
        .iter()
        .map(|name| PathPart::Key((*name).to_owned()))
        .collect()
}

impl PluginContext {
    fn load() -> Result<Self, CommandError> {
        Ok(Self {
            root: data_dir()?,
            program: own_program()?,
        })
    }

    fn record_path(&self) -> PathBuf {
        self.root.join("plugin").join("record.json")
    }

    /// Saves the record, or deletes its file if the record is empty.
    fn save_record(&self, record: &InstallRecord) -> Result<(), CommandError> {
        let path = self.record_path();
        if !record.is_empty() {
            let text = record.to_json();
            let is_saved = fs::read_to_string(&path).is_ok_and(|old| old == text);
            return if is_saved {
                Ok(())
            } else {
                steps::write(&path, &text)
            };
        }
        steps::apply(vec![FileStep::DeleteFile { path }])?;
        let _ = fs::remove_dir(self.root.join("plugin"));
        Ok(())
    }
}

/// Returns the directory for ralph's own files. This is `RALPH_STATE_DIR` if it is set, else the
/// user's data directory, because the plugin is not state.
fn data_dir() -> Result<PathBuf, CommandError> {
    if env::var_os("RALPH_STATE_DIR").is_some_and(|set| !set.is_empty()) {
        return Ok(StateDir::locate()?.root().to_owned());
    }
    let strategy = etcetera::choose_base_strategy();
    let strategy = strategy.map_err(|error| {
        CommandError::broken(format!("cannot find the home directory: {error}"))
    })?;
    Ok(strategy.data_dir().join("ralph"))
}

/// Returns the path of this program, quoted for a shell. Prefers the path in `PATH`, which stays
/// the same when ralph is updated.
fn own_program() -> Result<String, CommandError> {
    let own = env::current_exe()
        .map_err(|error| CommandError::broken(format!("cannot find the ralph program: {error}")))?;
    let real = |path: &Path| fs::canonicalize(path).ok();
    let found = program::find("ralph", Path::new("/")).filter(|found| real(found) == real(&own));
    let path = found.unwrap_or(own);
    let quoted = path.to_str().and_then(|path| shlex::try_quote(path).ok());
    quoted.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        CommandError::usage(
            format!(
                "the path of the ralph program, {}, is not valid UTF-8",
                path.display()
            ),
            "move ralph to a directory whose path is UTF-8: hooks store this path",
        )
    })
}
