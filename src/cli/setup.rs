//! The arguments of commands that set up or inspect ralph: `init`, `trust`, `doctor`, `completions`,
//! `man`.

use super::setting_flags::CheckFlags;
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;

/// The arguments of `ralph init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Write .ralph/settings.toml instead, with checks detected in the project
    #[arg(long)]
    pub(crate) settings: bool,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Write to the current directory instead of the top of the repository
    #[arg(long)]
    pub(crate) here: bool,
}

/// The end of the help of `ralph trust`.
pub(super) const TRUST_HELP: &str = "\
    Settings in a repository can run commands (checks, notify, scm, the agent's own) and widen what the agent may do. \
    They apply once you trust the file. A file that changes has to be trusted again. Settings without such keys, your own \
    settings and a file that you name with --config need no trust.\n\n\
    On a terminal, `ralph run` asks. With the variable CI set, it trusts the files for that run.";

/// The arguments of `ralph trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The directory with the settings [default: the top of the repository]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// List the settings files that you trust
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    pub(crate) list: bool,
    /// Do not trust the settings of this repository any longer
    #[arg(long)]
    pub(crate) revoke: bool,
}

/// The arguments of `ralph doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a systemd unit or launchd agent that resumes interrupted loops at login or boot
    #[arg(long, conflicts_with = "json")]
    pub(crate) unit: bool,
    /// Inspect the current directory instead of the top of the repository
    #[arg(long, conflicts_with = "unit")]
    pub(crate) here: bool,
}

/// The end of the help of `ralph selftest`.
pub(super) const SELFTEST_HELP: &str = "\
    Each cheat is a real loop with a scripted agent, in a view of the workspace that is thrown away. If every check is \
    green, the agent spoils the source files first and then hides it. Exit code 0 means that nothing got through but the \
    limits that docs/trust.md names, 1 that something did.\n\n\
    Example:\n  ralph selftest --check \"npm test\" --only tests --only settings";

// The arguments of `ralph selftest`. Not a doc comment: as the arguments are built lazily, clap would
// show it as the description of the command.
#[derive(Debug, Default, Args)]
pub(crate) struct SelftestArgs {
    #[command(flatten)]
    pub(crate) setting_flags: CheckFlags,
    /// Play only this class of cheats; repeatable
    #[arg(long, value_name = "CLASS")]
    pub(crate) only: Vec<String>,
    /// Use this settings file instead of the project's [default: .ralph/settings.*]
    #[arg(short, long, visible_alias = "settings", value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Test the current directory, with its own settings, instead of the top of the repository
    #[arg(long)]
    pub(crate) here: bool,
    /// Trust the project's settings to run commands, for this run only
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `ralph completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// The arguments of `ralph man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Print the page of this command [default: ralph itself]
    pub(crate) command: Option<String>,
}

/// Returns the command line without hidden subcommands.
pub(crate) fn without_hidden_commands(cli: &Command) -> Command {
    let mut visible = Command::new("ralph")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true);
    visible = visible.about(cli.get_about().cloned().unwrap_or_default());
    visible = visible.after_help(cli.get_after_help().cloned().unwrap_or_default());
    visible.subcommands(
        cli.get_subcommands()
            .filter(|command| !command.is_hide_set())
            .cloned(),
    )
}
