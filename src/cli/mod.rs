//! Defines the command line with clap. What each command does is in `commands`.

pub(crate) mod bus;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod fleet_target;
pub(crate) mod free_text;
pub(crate) mod hook;
pub(crate) mod lazy_args;
pub(crate) mod plugin;
pub(crate) mod receipt;
pub(crate) mod report;
pub(crate) mod setting_flags;
pub(crate) mod setup;
mod steer;
pub(crate) mod top;
pub(crate) mod ui;
mod views;

use crate::config::units::parse_text;
use crate::config::{Layer, RunRequest};
use crate::engine::ExitCode;
use clap::{Args, Parser, Subcommand};
use fleet_target::FleetTarget;
use lazy_args::LazyArgs;
use setting_flags::SettingFlags;
use std::path::PathBuf;
pub(crate) use steer::{NamesArgs, RmArgs, SayArgs, SetArgs, WaitArgs};
pub(crate) use views::{LogsArgs, LsArgs, ShowArgs};

/// Run a coding agent again and again, each time with a fresh context, until the work is proven
/// done
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
    disable_help_subcommand = false,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = format!("Flags without a command mean `ralph run`. Exit codes: {}.", exit_codes())
)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Lists the exit codes: `0 done, 1 failed, …`.
fn exit_codes() -> String {
    let codes = ExitCode::ALL.map(|code| format!("{} {}", code.code(), code.meaning()));
    codes.join(", ")
}

/// The subcommands, in the order in which the help lists them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a loop in the foreground
    #[command(
        after_help = "Flags without a value are off by default. Durations are written 90, 90s, 5m or 1h30m; 0 means \
        none. Settings files have the same keys and can change every default; `ralph config` shows the settings in \
        effect.\n\n\
        Example:\n  ralph run \"Make the tests pass.\" --check \"cargo test\" --max-time 2h -- claude -p"
    )]
    Run(Box<LazyArgs<RunArgs>>),
    /// Start a loop in the background
    #[command(after_help = "Takes the same flags as `ralph run`.\n\nExample:\n  \
        ralph spawn --name auth --prompt-file PROMPT.md -m 40 --check \"cargo test\"")]
    Spawn(Box<LazyArgs<RunArgs>>),
    /// Watch a background loop live
    Attach(NameArgs),
    /// Continue paused, stopped, blocked or crashed loops
    Resume(ResumeArgs),
    /// Show a loop's state
    Status(StatusArgs),
    /// List loops: running ones first, then by age
    Ls(LsArgs),
    /// Watch and steer all loops on one screen
    #[command(after_help = top::HELP)]
    Top(top::TopArgs),
    /// Print the agent's output
    Logs(LogsArgs),
    /// Serve a web page that shows all loops
    #[command(after_help = ui::UI_HELP)]
    Ui(ui::UiArgs),
    /// Show what a loop did, iteration by iteration
    #[command(after_help = "Examples:\n  ralph show shop       all iterations\n  \
        ralph show shop 7     the prompt, the activity, the checks and the diff of iteration 7")]
    Show(ShowArgs),
    /// Show what changed between two checkpoints
    #[command(
        after_help = "A checkpoint has the number of its iteration; 0 is the loop's start. `best` and `undo` are \
        checkpoints too.\n\nExamples:\n  ralph diff shop            everything since the start\n  \
        ralph diff shop 2..3       what iteration 3 changed\n  ralph diff shop --stat     only the files"
    )]
    Diff(DiffArgs),
    /// Put the files back to a checkpoint
    #[command(
        after_help = "Only files change: HEAD, branches, the index, ignored files, and files that the checkpoint \
        skipped stay as they are.\n\nExamples:\n  ralph rewind shop best\n  ralph rewind shop undo"
    )]
    Rewind(RewindArgs),
    /// Print what a loop ended with, and by which evidence
    #[command(
        after_help = "Examples:\n  ralph receipt shop\n  ralph receipt shop --output receipt.json"
    )]
    Receipt(receipt::ReceiptArgs),
    /// Prove the result of a loop again
    #[command(
        after_help = "The checks run again on the files that the loop ended with, in a view with the original tests. \
        Nothing in the workspace changes. Exit code 0 means that every result is the same, 1 that one differs, 2 that \
        the loop cannot be verified.\n\nExamples:\n  ralph verify shop\n  \
        ralph verify receipt.json     in another clone"
    )]
    Verify(receipt::VerifyArgs),
    /// Write a report about a loop, or about all loops of a night
    #[command(after_help = report::REPORT_HELP)]
    Report(report::ReportArgs),
    /// Show what loops cost, how long they took, and how many were done
    #[command(
        after_help = "WHAT is day, agent, model or repository. Loops in the archive count too.\n\nExamples:\n  ralph stats --since 7d\n  ralph stats --by model --json"
    )]
    Stats(report::StatsArgs),
    /// Pause loops after the running iteration
    Pause(NamesArgs),
    /// Stop loops and kill everything they started
    Stop(NamesArgs),
    /// Change a loop's limits
    Set(SetArgs),
    /// Add a message to the agent's next prompt
    Say(SayArgs),
    /// Wait until loops end or pause, and exit with their exit code
    Wait(WaitArgs),
    /// Remove loops that are not running
    Rm(RmArgs),
    /// For agents: claim that the task is done
    Done,
    /// For agents: report that a person has to decide
    Blocked(BlockedArgs),
    /// Post and read messages between loops and people
    Bus {
        #[command(subcommand)]
        command: bus::BusCommand,
    },
    /// Run loops on other machines: try, check and watch a fleet
    #[cfg(feature = "fleet")]
    Fleet {
        #[command(subcommand)]
        command: fleet::FleetCommand,
    },
    /// Fetch the branch of a loop of the fleet
    #[cfg(feature = "fleet")]
    Fetch(fleet_target::FetchArgs),
    /// Run loops of the fleet on this machine
    #[cfg(feature = "fleet")]
    Worker(fleet::WorkerArgs),
    #[command(about = plugin::about())]
    Plugin {
        #[command(subcommand)]
        command: plugin::PluginCommand,
    },
    /// Print every setting and where its value comes from
    Config(ConfigArgs),
    /// Trust a project's settings to run commands
    #[command(after_help = setup::TRUST_HELP)]
    Trust(setup::TrustArgs),
    /// Create a starter PROMPT.md or settings file
    Init(setup::InitArgs),
    /// Print the starter prompt
    Template,
    /// Check agents, tools, settings and the state directory
    Doctor(setup::DoctorArgs),
    /// Play cheating agents against your checks, and show which would get through
    #[command(after_help = setup::SELFTEST_HELP)]
    Selftest(Box<LazyArgs<setup::SelftestArgs>>),
    /// Print a completion script for a shell
    Completions(setup::CompletionsArgs),
    /// Print the manual page of ralph or of one command
    Man(setup::ManArgs),
    /// Run a demo loop with a scripted agent: real git, real checks, no account needed
    Demo(DemoArgs),
    /// For clients: handle a hook event of a session
    #[command(hide = true)]
    Hook {
        #[command(subcommand)]
        command: hook::HookCommand,
    },
    #[command(name = "__supervise", hide = true)]
    Supervise(SuperviseArgs),
    #[command(name = "__script", hide = true)]
    Script { file: PathBuf },
    #[command(name = "__sleeper", hide = true)]
    Sleeper {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

// The arguments of `ralph run` and `ralph spawn`. Not a doc comment: as the arguments are built
// lazily, clap would show it as the description of both commands.
#[derive(Debug, Default, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate command-line flag"
)]
pub(crate) struct RunArgs {
    /// Describe the task; next to a prompt file this is its title
    #[arg(value_name = "TASK", help_heading = "Task", value_parser = free_text::parser())]
    pub(crate) task: Vec<String>,
    /// Name the loop; use only a-z, 0-9, _ and - [default: the directory's name and a number]
    #[arg(long, value_name = "NAME", help_heading = "Task")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) setting_flags: SettingFlags,
    /// Same as --approve all
    #[arg(long, help_heading = "Agent", conflicts_with = "approve")]
    pub(crate) yolo: bool,
    /// Run this command as the agent, exactly as given, with the prompt on its standard input
    #[arg(last = true, value_name = "CMD ARGS", help_heading = "Agent")]
    pub(crate) command: Vec<String>,
    /// Use this settings file instead of the project's [default: .ralph/settings.*]
    #[arg(
        short,
        long,
        visible_alias = "settings",
        value_name = "PATH",
        help_heading = "Where"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Work in the current directory, with its own settings, instead of the top of the repository
    #[arg(long, help_heading = "Where")]
    pub(crate) here: bool,
    /// Trust the project's settings to run commands, for this run only
    #[arg(long, help_heading = "Where")]
    pub(crate) trust: bool,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub(crate) fleet: fleet::SubmitFlags,
    /// Print events as JSON, one per line
    #[arg(long, help_heading = "Output", conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Show the agent's output as it arrives (the default)
    #[arg(long, hide = true, overrides_with = "stream")]
    pub(crate) stream_agent_output: bool,
    /// Print the plan and the first prompt without starting anything
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    // Not a flag: leaves the suggested next step out of the summary.
    #[arg(skip)]
    pub(crate) hide_next_step: bool,
}

/// The arguments of `ralph config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Use this settings file instead of the project's [default: .ralph/settings.*]
    #[arg(short, long, visible_alias = "settings", value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Show the settings of the current directory instead of the top of the repository
    #[arg(long)]
    pub(crate) here: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "schema")]
    pub(crate) json: bool,
    /// Print the JSON schema of a settings file instead
    #[arg(long)]
    pub(crate) schema: bool,
}

/// The flags that select what the console shows.
#[derive(Clone, Copy, Debug, Default, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate command-line flag"
)]
pub(crate) struct OutputArgs {
    /// Print only the result
    #[arg(short, long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print events as JSON, one per line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Capture the agent's output without showing it
    #[arg(
        long,
        visible_alias = "no-stream-agent-output",
        help_heading = "Output"
    )]
    pub(crate) no_stream: bool,
    /// Show the agent's raw event stream instead of rendering it
    #[arg(long, help_heading = "Output")]
    pub(crate) raw: bool,
    // Not a flag: leaves the suggested next step out of the summary.
    #[arg(skip)]
    pub(crate) hide_next_step: bool,
    // Not a flag: the console is a tmux window or a log file, which people open and close.
    #[arg(skip)]
    pub(crate) in_window: bool,
}

/// The arguments of `ralph resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The loops; several only if they run in the background
    #[arg(id = "name", value_name = "NAME", required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// Resume all background loops that a crash or a shutdown interrupted
    #[arg(long, conflicts_with_all = ["name", "answer"])]
    pub(crate) all: bool,
    /// Add a message to the agent's next prompt, such as the answer it is waiting for
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = parse_text)]
    pub(crate) answer: Option<String>,
    /// Accept the changes of these tests or settings, and decide again without an agent
    #[arg(long, value_name = "GLOB", conflicts_with_all = ["all", "answer"])]
    pub(crate) accept: Vec<String>,
    /// Retry at once, without waiting for a rate limit to reset or a rest to end
    #[arg(long)]
    pub(crate) now: bool,
    /// Run a background loop as a plain process instead of in a tmux window
    #[arg(long)]
    pub(crate) no_tmux: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// Run the supervisor of a background loop
#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// The loop
    pub(crate) name: String,
    /// The directory with all loops
    #[arg(long)]
    pub(crate) state_dir: PathBuf,
    /// The pipe from which to read the environment, in a tmux window
    #[arg(long)]
    pub(crate) environment: Option<PathBuf>,
    /// Whether the supervisor runs in a tmux window
    #[arg(long)]
    pub(crate) in_window: bool,
}

/// The arguments of commands that take only the name of a loop.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The loop
    pub(crate) name: String,
}

/// `ralph status`
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The loop
    pub(crate) name: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The loop
    pub(crate) name: String,
    /// Two checkpoints; either may be left out [default: from 0 to the newest]
    #[arg(value_name = "A..B", allow_hyphen_values = false)]
    pub(crate) range: Option<String>,
    /// Print only the files, and how many of their lines changed
    #[arg(long)]
    pub(crate) stat: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph rewind`.
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The loop
    pub(crate) name: String,
    /// The checkpoint: an iteration's number, 0 for the start, `best` for the most green checks, or
    /// `undo` for the files before the last rewind
    #[arg(value_name = "N|best|undo")]
    pub(crate) to: String,
}

/// The arguments of `ralph blocked`.
#[derive(Debug, Args)]
pub(crate) struct BlockedArgs {
    /// The reason
    #[arg(required = true, value_parser = free_text::parser())]
    pub(crate) why: Vec<String>,
}

/// The arguments of `ralph demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the demo's directory
    #[arg(long)]
    pub(crate) keep: bool,
}

impl RunArgs {
    /// Returns the settings given as flags.
    pub(crate) fn layer(&self) -> Layer {
        let mut flags = self.setting_flags.clone();
        if self.yolo {
            flags.set("approve", &"all".into());
        }
        if self.stream_agent_output && !flags.contains("stream") {
            flags.set("stream", &true.into());
        }
        flags.layer()
    }

    /// Returns whether the loop shall run in the fleet.
    pub(crate) fn is_for_fleet(&self) -> bool {
        #[cfg(feature = "fleet")]
        return self.fleet.target.fleet.is_some();
        #[cfg(not(feature = "fleet"))]
        false
    }

    /// Returns the parts of the run that are not settings.
    pub(crate) fn request(&self, workspace: PathBuf, config_dir: Option<PathBuf>) -> RunRequest {
        RunRequest {
            task: (!self.task.is_empty()).then(|| self.task.join(" ")),
            command: self.command.clone(),
            workspace,
            config_dir,
            ..RunRequest::default()
        }
    }
}
