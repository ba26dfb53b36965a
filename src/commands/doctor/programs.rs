//! Which agents and tools there are, in which version, and the command that gets one that is missing.

use super::report::Program;
use crate::config::agents::Preset;
use crate::config::billing::{Bill, bill_here};
use crate::os::program;
use crate::process::probe::{Answer, ask};
use crate::ui::fit;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tools: the program, how it says its version, its package, and what it is for.
const TOOLS: [(&str, &str, &str, &str); 3] = [
    ("git", "--version", "git", "what an agent has changed"),
    ("tmux", "-V", "tmux", "loops in the background"),
    ("bwrap", "--version", "bubblewrap", "walls around an agent"),
];

/// Package managers, the first of which that is there is named.
const MANAGERS: [(&str, &str); 6] = [
    ("brew", "brew install"),
    ("apt-get", "apt-get install -y"),
    ("dnf", "dnf install -y"),
    ("pacman", "pacman -S"),
    ("zypper", "zypper install"),
    ("apk", "apk add"),
];

/// Asks all of them, but for agents that the directory itself names: whoever only looks around in somebody's
/// repository does not want to run what is there. An error is a signal that asked this process to go.
pub(crate) fn look(
    here: &Path,
    presets: Vec<(String, Preset)>,
    named_here: &[String],
    allow_keys: bool,
) -> io::Result<(Vec<Program>, Vec<Program>)> {
    let (unasked, presets): (Vec<_>, Vec<_>) = presets
        .into_iter()
        .partition(|(name, _)| named_here.contains(name));
    let tools = TOOLS
        .iter()
        .filter(|(name, ..)| *name != "bwrap" || cfg!(target_os = "linux"));
    let tools: Vec<_> = tools.collect();
    let mut commands: Vec<Vec<String>> = Vec::new();
    commands.extend(presets.iter().map(|(_, preset)| {
        preset
            .command
            .iter()
            .take(1)
            .chain(&preset.version)
            .cloned()
            .collect()
    }));
    commands.extend(
        tools
            .iter()
            .map(|(name, version, ..)| vec![(*name).to_owned(), (*version).to_owned()]),
    );
    let answers = ask(&commands, here, PATIENCE)?;
    let mut answers = commands
        .iter()
        .zip(answers)
        .map(|(command, answer)| match answer {
            // It is there: what is missing is what it begins with.
            Answer::Missing if program::find(&command[0], here).is_some() => {
                Answer::Refused("the program that is to run it is missing".into())
            }
            answer => answer,
        });
    let agents = presets
        .into_iter()
        .zip(answers.by_ref())
        .map(|((name, preset), answer)| {
            let Bill { payer, held_back } = bill_here(&preset, allow_keys);
            let title = if preset.title.is_empty() {
                name.clone()
            } else {
                preset.title
            };
            let agent = answered(name, title, &answer, preset.install, Some(preset.login));
            Program {
                payer,
                held_back,
                ..agent
            }
        });
    let mut agents: Vec<Program> = agents.collect();
    agents.extend(
        unasked
            .into_iter()
            .map(|(name, preset)| unasked_agent(here, name, preset, allow_keys)),
    );
    let tools = tools
        .into_iter()
        .zip(answers)
        .map(|((name, _, package, why), answer)| {
            answered(
                (*name).to_owned(),
                (*why).to_owned(),
                &answer,
                install(package),
                None,
            )
        });
    Ok((agents, tools.collect()))
}

fn unasked_agent(here: &Path, name: String, preset: Preset, allow_keys: bool) -> Program {
    let Bill { payer, held_back } = bill_here(&preset, allow_keys);
    let there = program::find(&preset.command[0], here).is_some_and(|path| program::may_run(&path));
    Program {
        title: if preset.title.is_empty() {
            name.clone()
        } else {
            preset.title
        },
        name,
        installed: there,
        version: None,
        trouble: there.then(|| {
            "named by this directory's settings, so it was not asked for its version".into()
        }),
        works: there,
        install: preset.install,
        login: Some(preset.login),
        payer,
        held_back,
    }
}

fn answered(
    name: String,
    title: String,
    answer: &Answer,
    install: String,
    login: Option<String>,
) -> Program {
    let (version, trouble, works) = match answer {
        Answer::Said(exit, text) if exit.code == Some(0) => (version(text), None, true),
        Answer::Said(exit, text) => {
            let how = match (exit.code, exit.signal) {
                (Some(code), _) => format!("exit {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or(0)),
            };
            let first = text
                .lines()
                .next()
                .map(|line| format!(": {}", fit(line, 60)))
                .unwrap_or_default();
            (
                None,
                Some(format!("asked for its version, it failed ({how}){first}")),
                false,
            )
        }
        Answer::Missing => (None, None, false),
        Answer::Refused(why) => (None, Some(format!("it cannot be started: {why}")), false),
        // A cold start on a busy machine is slow, and no defect.
        Answer::Late => (
            None,
            Some(format!(
                "it did not say its version in {} s",
                PATIENCE.as_secs()
            )),
            true,
        ),
    };
    let installed = *answer != Answer::Missing;
    let (payer, held_back) = (None, Vec::new());
    Program {
        name,
        title,
        installed,
        version,
        trouble,
        works,
        install,
        login,
        payer,
        held_back,
    }
}

/// The first word that looks like a version: `git version 2.43.0` says 2.43.0.
fn version(text: &str) -> Option<String> {
    let word = text.split_whitespace().map(|word| {
        word.trim_start_matches(['v', 'V'])
            .trim_end_matches([',', ')'])
    });
    let mut like = word.filter(|word| {
        let numbers: Vec<&str> = word.splitn(3, '.').collect();
        numbers.len() > 1
            && numbers[0].bytes().all(|c| c.is_ascii_digit())
            && numbers[1].starts_with(|c: char| c.is_ascii_digit())
    });
    like.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.len() <= 40)
        .map(str::to_owned)
}

fn install(package: &str) -> String {
    let found = MANAGERS
        .iter()
        .find(|(name, _)| program::find(name, Path::new(".")).is_some());
    let Some((program, words)) = found else {
        return format!("get {package} from your system's packages");
    };
    let root = *program == "brew" || rustix::process::geteuid().is_root();
    format!("{}{words} {package}", if root { "" } else { "sudo " })
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        for (text, found) in [
            ("git version 2.43.0\n", Some("2.43.0")),
            ("tmux 3.4", Some("3.4")),
            ("tmux 3.3a\n", Some("3.3a")),
            ("2.1.34 (Claude Code)\n", Some("2.1.34")),
            ("codex-cli 0.46.0-alpha.1", Some("0.46.0-alpha.1")),
            ("tool v1.2.3, built today", Some("1.2.3")),
            ("(1.2)", None),
            ("hello. world", None),
            ("", None),
        ] {
            assert_eq!(version(text).as_deref(), found, "{text:?}");
        }
    }
}
