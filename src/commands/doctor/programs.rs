//! Finds the installed agents and tools, their versions, and how to install those that are missing.

use super::report::ProgramReport;
use crate::config::agents::AgentPreset;
use crate::config::billing::{Billing, detect_billing};
use crate::os::program;
use crate::process::probe::{ProbeResult, run_probes};
use crate::process::version::VERSION_TIMEOUT;
use crate::process::version_text::find_version;
use crate::ui::truncate_to_width;
use std::io;
use std::path::Path;

/// The tools that ralph uses: program, version flag, package and purpose.
const TOOLS: [(&str, &str, &str, &str); 2] = [
    ("git", "--version", "git", "diffs, commits and worktrees"),
    ("tmux", "-V", "tmux", "background loops"),
];

/// Package managers and their install commands. The first that is installed is suggested.
const MANAGERS: [(&str, &str); 6] = [
    ("brew", "brew install"),
    ("apt-get", "apt-get install -y"),
    ("dnf", "dnf install -y"),
    ("pacman", "pacman -S"),
    ("zypper", "zypper install"),
    ("apk", "apk add"),
];

/// Runs agents and tools to get their versions. Returns the agents, then the tools. Does not run
/// agents that this directory's settings define, because inspecting a foreign repository must not
/// execute its code. Fails only if it is interrupted.
pub(super) fn inspect(
    here: &Path,
    presets: Vec<(String, AgentPreset)>,
    project_agents: &[String],
    allow_keys: bool,
) -> io::Result<(Vec<ProgramReport>, Vec<ProgramReport>)> {
    let (not_run, presets): (Vec<_>, Vec<_>) = presets
        .into_iter()
        .partition(|(name, _)| project_agents.contains(name));
    let tools: Vec<_> = TOOLS.iter().collect();
    let mut commands: Vec<Vec<String>> = Vec::new();
    commands.extend(presets.iter().map(|(_, preset)| preset.version_command()));
    commands.extend(
        tools
            .iter()
            .map(|(name, version, ..)| vec![(*name).to_owned(), (*version).to_owned()]),
    );
    let results = run_probes(&commands, here, VERSION_TIMEOUT)?;
    let mut results = commands
        .iter()
        .zip(results)
        .map(|(command, result)| match result {
            // The file exists, so its interpreter must be missing.
            ProbeResult::NotFound if program::find(&command[0], here).is_some() => {
                ProbeResult::NotStarted("its interpreter is missing".into())
            }
            result => result,
        });
    let agents = presets
        .into_iter()
        .zip(results.by_ref())
        .map(|((name, preset), result)| {
            let Billing { payer, held_back } = detect_billing(&preset, allow_keys);
            let title = if preset.title.is_empty() {
                name.clone()
            } else {
                preset.title
            };
            let agent = report(name, title, &result, preset.install, Some(preset.login));
            ProgramReport {
                payer,
                held_back,
                ..agent
            }
        });
    let mut agents: Vec<ProgramReport> = agents.collect();
    agents.extend(
        not_run
            .into_iter()
            .map(|(name, preset)| report_without_running(here, name, preset, allow_keys)),
    );
    let tools = tools
        .into_iter()
        .zip(results)
        .map(|((name, _, package, purpose), result)| {
            report(
                (*name).to_owned(),
                (*purpose).to_owned(),
                &result,
                install_command(package),
                None,
            )
        });
    Ok((agents, tools.collect()))
}

fn report_without_running(
    here: &Path,
    name: String,
    preset: AgentPreset,
    allow_keys: bool,
) -> ProgramReport {
    let Billing { payer, held_back } = detect_billing(&preset, allow_keys);
    let installed =
        program::find(&preset.command[0], here).is_some_and(|path| program::is_executable(&path));
    ProgramReport {
        title: if preset.title.is_empty() {
            name.clone()
        } else {
            preset.title
        },
        name,
        installed,
        version: None,
        problem: installed.then(|| {
            "not run to get its version: this directory's settings define or change it".into()
        }),
        works: installed,
        install: preset.install,
        login: Some(preset.login),
        payer,
        held_back,
    }
}

fn report(
    name: String,
    title: String,
    result: &ProbeResult,
    install: String,
    login: Option<String>,
) -> ProgramReport {
    let (version, problem, works) = match result {
        ProbeResult::Exited(exit, text) if exit.code == Some(0) => {
            (find_version(text).map(str::to_owned), None, true)
        }
        ProbeResult::Exited(exit, text) => {
            let exit_text = match (exit.code, exit.signal) {
                (Some(code), _) => format!("exit {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or(0)),
            };
            let first = text
                .lines()
                .next()
                .map(|line| format!(": {}", truncate_to_width(line, 60)))
                .unwrap_or_default();
            (
                None,
                Some(format!("printing its version failed ({exit_text}){first}")),
                false,
            )
        }
        ProbeResult::NotFound => (None, None, false),
        ProbeResult::NotStarted(why) => (None, Some(format!("cannot be started: {why}")), false),
        // A cold start on a busy machine can be slow, so the program may still work.
        ProbeResult::TimedOut => (
            None,
            Some(format!(
                "did not print its version within {} s",
                VERSION_TIMEOUT.as_secs()
            )),
            true,
        ),
    };
    let installed = *result != ProbeResult::NotFound;
    let (payer, held_back) = (None, Vec::new());
    ProgramReport {
        name,
        title,
        installed,
        version,
        problem,
        works,
        install,
        login,
        payer,
        held_back,
    }
}

fn install_command(package: &str) -> String {
    let found = MANAGERS
        .iter()
        .find(|(name, _)| program::find(name, Path::new(".")).is_some());
    let Some((program, command)) = found else {
        return format!("install {package} with your package manager");
    };
    let needs_no_sudo = *program == "brew" || rustix::process::geteuid().is_root();
    format!(
        "{}{command} {package}",
        if needs_no_sudo { "" } else { "sudo " }
    )
}
