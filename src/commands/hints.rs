//! Suggests what was meant by a command or flag that ralph does not have.

use crate::cli::Cli;
use crate::config::keys::{SettingKey, nearest, table};
use crate::engine::Limit;
use crate::engine::format::shell_quote;
use clap::CommandFactory;

/// Commands of other tools, and what they are called here.
const COMMANDS: [(&str, &str); 41] = [
    ("abort", "stop"),
    ("bg", "spawn"),
    ("cancel", "stop"),
    ("changes", "diff"),
    ("clean", "rm --ended"),
    ("cleanup", "rm --ended"),
    ("continue", "resume"),
    ("daemon", "spawn"),
    ("delete", "rm"),
    ("exec", "run"),
    ("follow", "logs -f"),
    ("goal", "run"),
    ("halt", "stop"),
    ("info", "status"),
    ("inspect", "status"),
    ("jobs", "ls"),
    ("kill", "stop"),
    ("list", "ls"),
    ("log", "logs"),
    ("loop", "run"),
    ("loops", "ls"),
    ("message", "say"),
    ("monitor", "attach"),
    ("new", "run"),
    ("output", "logs"),
    ("prune", "rm --ended"),
    ("ps", "ls"),
    ("remove", "rm"),
    ("restart", "resume"),
    ("restore", "rewind"),
    ("revert", "rewind"),
    ("rollback", "rewind"),
    ("settings", "config"),
    ("setup", "init"),
    ("start", "run"),
    ("stat", "status"),
    ("tail", "logs -f"),
    ("tell", "say"),
    ("undo", "rewind NAME undo"),
    ("version", "--version"),
    ("watch", "attach"),
];

/// Flags of other tools, and what to use here.
const FLAGS: [(&str, &str); 22] = [
    ("--background", "use `ralph spawn` to run in the background"),
    ("--budget", "did you mean --max-cost?"),
    (
        "--cwd",
        "change to the directory first: the loop works in the current one",
    ),
    (
        "--dangerously-skip-permissions",
        "did you mean --approve all?",
    ),
    (
        "--debug",
        "the output is shown by default; --raw shows it as the agent prints it",
    ),
    ("--detach", "use `ralph spawn` to run in the background"),
    (
        "--dir",
        "change to the directory first: the loop works in the current one",
    ),
    ("--follow", "use `ralph logs NAME --follow`"),
    ("--format", "did you mean --json?"),
    ("--full-auto", "did you mean --approve all?"),
    ("--iterations", "did you mean --max-iterations?"),
    ("--loops", "did you mean --max-iterations?"),
    ("--max-loops", "did you mean --max-iterations?"),
    ("--max-turns", "did you mean --max-iterations?"),
    ("--output", "did you mean --json?"),
    ("--output-format", "did you mean --json?"),
    ("--silent", "did you mean --quiet?"),
    (
        "--task",
        "write the task without a flag: ralph run \"TASK\"",
    ),
    ("--test", "did you mean --check?"),
    (
        "--timeout",
        "did you mean --iteration-timeout or --max-time?",
    ),
    (
        "--verbose",
        "the output is shown by default; -q shows less, --raw shows it as the agent prints it",
    ),
    ("--verify", "did you mean --check?"),
];

/// Suggests a command for a word that is none; `None` if nothing is similar.
pub(super) fn command_hint(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    let other = COMMANDS.iter().find(|(theirs, _)| *theirs == lower);
    let meant = other.map(|(_, ours)| (*ours).to_owned()).or_else(|| {
        let cli = Cli::command();
        let known = cli
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name);
        nearest(word, known).map(str::to_owned)
    })?;
    Some(format!(
        "did you mean `ralph {meant}`? run `ralph help` to list all commands"
    ))
}

/// Suggests to run what was typed as a task. Flags and the agent's command stay outside the task.
pub(super) fn task_hint<'a>(typed: impl Iterator<Item = &'a str>) -> String {
    let mut typed = typed.peekable();
    let mut task = Vec::new();
    while let Some(word) = typed.next_if(|word| !word.starts_with('-')) {
        task.push(word);
    }
    let task = task.join(" ");
    let task = if task.contains(['"', '$', '`', '\\', '!']) {
        shell_quote(&task)
    } else {
        format!("\"{task}\"")
    };
    let command = ["ralph run".to_owned(), task].into_iter();
    let command: Vec<_> = command.chain(typed.map(shell_quote)).collect();
    format!("run `{}` to run it as a task", command.join(" "))
}

/// Suggests how to write a flag of `ralph run` as an argument of `ralph set`; `None` if the flag is
/// not a limit.
pub(super) fn limit_hint(typed: &[&str], flag: &str) -> Option<String> {
    let name = flag.split('=').next().unwrap_or_default();
    let is_meant = |key: &&SettingKey| match name.strip_prefix("--") {
        Some(long) => key.name == long,
        None => key.short.is_some_and(|short| name == format!("-{short}")),
    };
    let key = table().iter().find(is_meant)?;
    Limit::from_key(&key.name)?;
    let at = typed.iter().position(|word| word.starts_with(name))?;
    let value = match typed[at][name.len()..].trim_start_matches('=') {
        "" => typed.get(at + 1).copied().unwrap_or("N"),
        attached => attached,
    };
    let limit = shell_quote(&format!("{}={value}", key.name));
    let loop_name = typed.first().filter(|word| !word.starts_with('-'));
    let loop_name = loop_name.copied().unwrap_or("NAME");
    Some(format!("use `ralph set {loop_name} {limit}`"))
}

/// Suggests what to write instead of a flag that the command does not have. `suggested` is the
/// parser's own suggestion, which is used only if it is similar to what was typed.
pub(super) fn flag_hint(command: &str, flag: &str, suggested: Option<&str>) -> Option<String> {
    let name = flag.split('=').next().unwrap_or_default();
    let other = FLAGS.iter().find(|(theirs, _)| *theirs == name);
    let has_flag = |hint: &str| {
        let words = hint.split(|c: char| c.is_whitespace() || c == '?');
        words
            .filter(|word| word.starts_with("--"))
            .all(|word| command_has(command, word))
    };
    if let Some((_, hint)) = other.filter(|(_, hint)| has_flag(hint)) {
        return Some((*hint).to_owned());
    }
    let bare = |flag: &str| flag.trim_start_matches('-').to_owned();
    suggested
        .filter(|suggested| nearest(&bare(name), [bare(suggested).as_str()].into_iter()).is_some())
        .map(|suggested| format!("did you mean {suggested}?"))
}

fn command_has(command: &str, flag: &str) -> bool {
    let mut cli = Cli::command();
    cli.build();
    let long = flag.trim_start_matches("--").trim_end_matches([';', ',']);
    cli.find_subcommand(command).is_some_and(|command| {
        command
            .get_arguments()
            .any(|arg| arg.get_long() == Some(long))
    })
}
