//! `ralph plugin`: the loop as a command inside a client's own sessions.

mod claude;
mod codex;
mod files;
mod json;
mod record;
mod settings_file;
mod status;
mod steps;
mod trust;
mod version;

pub(crate) use claude::{config_dir as claude_config_dir, original_enabled};
pub(crate) use status::{Standing, standings};

use super::run::workspace;
use crate::cli::hook::Client;
use crate::cli::plugin::{InstallWords, PluginVerb, UninstallWords};
use crate::lifecycle::failure::{Failure, answer};
use crate::os::program;
use crate::store::Home;
use crate::ui::say;
use etcetera::BaseStrategy;
use json::Part;
use record::Record;
use std::path::{Path, PathBuf};
use std::{env, fs};
use steps::Step;
use version::Version;

const CLIENTS: [Client; 2] = [Client::Claude, Client::Codex];

/// What every client's plugin needs.
struct Base {
    /// Where ralph keeps files of its own.
    root: PathBuf,
    /// The program that hooks call, as a shell reads it.
    program: String,
}

/// What is to be done for one client, and what its user should know.
#[derive(Default)]
struct Work {
    steps: Vec<Step>,
    notes: Vec<String>,
}

pub(crate) fn plugin(verb: &PluginVerb) -> Result<i32, Failure> {
    match verb {
        PluginVerb::Install(words) => install(words),
        PluginVerb::Path => path(),
        PluginVerb::Uninstall(words) => uninstall(words),
    }
}

fn install(words: &InstallWords) -> Result<i32, Failure> {
    let here = workspace()?;
    let named = |client: &Client| words.clients.contains(client);
    let is_there = |client: &Client| program::find(client.name(), &here).is_some();
    let wanted = |client: &Client| named(client) || words.clients.is_empty() && is_there(client);
    let clients: Vec<Client> = CLIENTS.into_iter().filter(wanted).collect();
    if clients.is_empty() {
        return Err(Failure::usage(
            "neither claude nor codex is installed",
            "install one of them, or name it: ralph plugin install claude",
        ));
    }
    let Ok(versions) = version::ask_all(&clients, &here) else {
        return Ok(130);
    };
    let base = Base::here()?;
    let mut record = Record::read(&base.record())?;
    let mut all = Vec::new();
    for (client, version) in clients.iter().zip(&versions) {
        let mut work = match client {
            Client::Claude => claude::install(&base, *version, &mut record)?,
            Client::Codex => codex::install(&base, words.trust, &mut record)?,
        };
        if !is_there(client) {
            let name = client.name();
            work.notes.push(format!(
                "there is no program {name} in your PATH; it finds the plugin once there is"
            ));
        }
        all.push((*client, *version, work));
    }
    for (client, version, work) in &all {
        let version = version
            .map(|version| format!(" {}", version::shown(version)))
            .unwrap_or_default();
        say(&told(
            &format!("{}{version}", title(*client)),
            work,
            "nothing to change: it is installed",
        ));
    }
    if words.dry_run {
        return Ok(0);
    }
    let changed = all.iter().any(|(_, _, work)| !work.steps.is_empty());
    // Before anything is changed there is something that can take it back.
    base.keep(&record)?;
    all.into_iter()
        .try_for_each(|(_, _, work)| steps::obey(work.steps))?;
    if changed {
        let how = clients
            .iter()
            .map(|client| format!("{} in {}", command(*client), title(*client)));
        say(&format!(
            "Installed. In a new session, type {}.\n",
            how.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(0)
}

fn path() -> Result<i32, Failure> {
    let Ok(versions) = version::ask_all(&[Client::Claude], &workspace()?) else {
        return Ok(130);
    };
    let (dir, step) = claude::plugin_dir(&Base::here()?, versions[0]);
    steps::obey(step.into_iter().collect())?;
    answer(&format!("{}\n", dir.display()))?;
    Ok(0)
}

fn uninstall(words: &UninstallWords) -> Result<i32, Failure> {
    let base = Base::here()?;
    let mut record = Record::read(&base.record())?;
    let mut all = Vec::new();
    for client in CLIENTS
        .into_iter()
        .filter(|client| words.clients.is_empty() || words.clients.contains(client))
    {
        let work = match client {
            Client::Claude => claude::uninstall(&base, &mut record)?,
            Client::Codex => codex::uninstall(&base, &mut record)?,
        };
        all.push((client, work));
    }
    for (client, work) in &all {
        say(&told(
            title(*client),
            work,
            "nothing to take away: it is not installed",
        ));
    }
    if words.dry_run {
        return Ok(0);
    }
    all.into_iter()
        .try_for_each(|(_, work)| steps::obey(work.steps))?;
    base.keep(&record)?;
    Ok(0)
}

fn told(title: &str, work: &Work, otherwise: &str) -> String {
    let mut lines = vec![title.to_owned()];
    lines.extend(work.steps.is_empty().then(|| format!("  {otherwise}")));
    lines.extend(steps::shown(&work.steps));
    lines.extend(work.notes.iter().map(|note| format!("  note    {note}")));
    lines.join("\n") + "\n"
}

fn title(client: Client) -> &'static str {
    match client {
        Client::Claude => "Claude Code",
        Client::Codex => "Codex",
    }
}

/// What begins a loop there.
fn command(client: Client) -> &'static str {
    match client {
        Client::Claude => "/ralph-loop",
        Client::Codex => "$ralph-loop",
    }
}

/// A path through objects.
fn keys(names: &[&str]) -> Vec<Part> {
    names
        .iter()
        .map(|name| Part::Key((*name).to_owned()))
        .collect()
}

impl Base {
    fn here() -> Result<Self, Failure> {
        Ok(Self {
            root: root()?,
            program: own_program()?,
        })
    }

    fn record(&self) -> PathBuf {
        self.root.join("plugin").join("record.json")
    }

    /// Keeps what was changed where; nothing is kept of nothing.
    fn keep(&self, record: &Record) -> Result<(), Failure> {
        let path = self.record();
        if !record.is_empty() {
            let text = record.text();
            let is_there = fs::read_to_string(&path).is_ok_and(|old| old == text);
            return if is_there {
                Ok(())
            } else {
                steps::write(&path, &text)
            };
        }
        steps::obey(vec![Step::Delete { path }])?;
        let _ = fs::remove_dir(self.root.join("plugin"));
        Ok(())
    }
}

/// The plugin is no state of loops: it lies with what programs bring along, unless all of ralph's files have one place.
fn root() -> Result<PathBuf, Failure> {
    if env::var_os("RALPH_STATE_DIR").is_some_and(|set| !set.is_empty()) {
        return Ok(Home::locate()?.root().to_owned());
    }
    let strategy = etcetera::choose_base_strategy();
    let strategy = strategy
        .map_err(|error| Failure::broken(format!("cannot find the home directory: {error}")))?;
    Ok(strategy.data_dir().join("ralph"))
}

/// This program as a shell reads it: by the path that it is found under, which an update of it leaves alone.
fn own_program() -> Result<String, Failure> {
    let own = env::current_exe()
        .map_err(|error| Failure::broken(format!("cannot find this program: {error}")))?;
    let real = |path: &Path| fs::canonicalize(path).ok();
    let found = program::find("ralph", Path::new("/")).filter(|found| real(found) == real(&own));
    let path = found.unwrap_or(own);
    let quoted = path.to_str().and_then(|path| shlex::try_quote(path).ok());
    quoted.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        Failure::usage(
            format!("{} is no text", path.display()),
            "move ralph to a directory with a plain name",
        )
    })
}
