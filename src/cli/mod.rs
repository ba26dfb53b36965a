//! The words: what can be typed, and nothing about what it means.

pub mod bus;
pub mod hook;
pub mod lazy_args;
pub mod plugin;
pub mod setting_flags;
pub mod setup;

use crate::config::units::{Span, words};
use crate::config::{Errand, Layer};
use clap::{Args, Parser, Subcommand};
use lazy_args::Later;
use setting_flags::Knobs;
use std::path::PathBuf;

/// Run a coding agent again and again, each time with a fresh context, until the work is proven done
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
    disable_help_subcommand = false,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Flags without a verb mean `ralph run`. Exit codes: 0 done, 1 failed, 2 usage, 3 blocked, \
waiting or paused, 130 stopped."
)]
pub struct Words {
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a loop in the foreground
    #[command(
        after_help = "Flags without a value are off unless given. Durations read 90, 90s, 5m or 2h; 0 is none. \
        Settings files hold the same keys, and may change every default: ralph config shows what holds here.\n\n\
        For example:\n  ralph run \"Make the tests pass.\" --check \"cargo test\" --max-time 2h -- claude -p"
    )]
    Run(Box<Later<RunWords>>),
    /// Run a loop in the background
    #[command(after_help = "Takes the flags of ralph run. For example:\n  \
        ralph spawn --name auth --prompt-file PROMPT.md -m 40 --check \"cargo test\"")]
    Spawn(Box<Later<RunWords>>),
    /// Look at a loop in the background as it works
    Attach(NameWords),
    /// Go on with a paused, stopped, blocked or crashed loop
    Resume(ResumeWords),
    /// Show where a loop stands
    Status(StatusWords),
    /// List all loops
    Ls(LsWords),
    /// Print what the agent printed
    Logs(LogsWords),
    /// Let the running agent finish, then start nothing new
    Pause(NameWords),
    /// Stop a loop and everything that it has started
    Stop(NameWords),
    /// Change a limit of a loop
    Set(SetWords),
    /// Tell the agent something, in its next prompt
    Say(SayWords),
    /// Wait until loops are over or paused, and exit as they did
    Wait(WaitWords),
    /// Remove loops that do not run, and their worktrees if you say so
    Rm(RmWords),
    /// For agents: claim that the work is done
    Done,
    /// For agents: say that a person is needed
    Blocked(BlockedWords),
    /// Tell other loops and people something, or hear what they say
    Bus {
        /// What to do
        #[command(subcommand)]
        verb: bus::BusVerb,
    },
    /// Put the loop into sessions of Claude Code and Codex, as /ralph-loop
    Plugin {
        /// What to do
        #[command(subcommand)]
        verb: plugin::PluginVerb,
    },
    /// Print every setting, and where it comes from
    Config(ConfigWords),
    /// Write a starter PROMPT.md, or settings that fit this directory
    Init(setup::InitWords),
    /// Print the starter prompt
    Template,
    /// Show what is installed, what is missing, and what would get it
    Doctor(setup::DoctorWords),
    /// Print what a shell needs to complete ralph's words
    Completions(setup::CompletionsWords),
    /// Print the manual page, of ralph or of one verb
    Man(setup::ManWords),
    /// Show a whole loop on a scripted agent: real git, real checks, no account
    Demo(DemoWords),
    /// For clients: what goes on in a session that a loop lives in
    #[command(hide = true)]
    Hook {
        /// What
        #[command(subcommand)]
        verb: hook::HookVerb,
    },
    #[command(name = "__supervise", hide = true)]
    Supervise(SuperviseWords),
    #[command(name = "__script", hide = true)]
    Script { file: PathBuf },
    #[command(name = "__sleeper", hide = true)]
    Sleeper {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// Run a loop in the foreground
#[derive(Debug, Default, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
pub struct RunWords {
    /// What to do, in words; beside a prompt file it is the title
    #[arg(value_name = "TASK", help_heading = "Task")]
    pub task: Vec<String>,
    /// The loop's name: a-z, 0-9, _ and - [default: the directory's name and a number]
    #[arg(long, value_name = "NAME", help_heading = "Task")]
    pub name: Option<String>,
    #[command(flatten)]
    pub knobs: Knobs,
    /// The same as --approve all
    #[arg(long, help_heading = "Agent", conflicts_with = "approve")]
    pub yolo: bool,
    /// The agent's command, run as it is; the prompt is its standard input
    #[arg(last = true, value_name = "CMD ARGS", help_heading = "Agent")]
    pub command: Vec<String>,
    /// Another settings file instead of the project's [default: .ralph/settings.*]
    #[arg(
        short,
        long,
        visible_alias = "settings",
        value_name = "PATH",
        help_heading = "Where"
    )]
    pub config: Option<PathBuf>,
    /// Print one event a line, as JSON
    #[arg(long, help_heading = "Output", conflicts_with = "quiet")]
    pub json: bool,
    /// Show the agent's output as it comes; this is the default
    #[arg(long, hide = true, overrides_with = "stream")]
    pub stream_agent_output: bool,
    /// Print the plan and the first prompt, and start nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Not to be typed: there is nothing to do next.
    #[arg(skip)]
    pub no_next: bool,
}

/// `ralph config`
#[derive(Debug, Args)]
pub struct ConfigWords {
    /// Another settings file instead of the project's [default: .ralph/settings.*]
    #[arg(short, long, visible_alias = "settings", value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// As one JSON object
    #[arg(long, conflicts_with = "schema")]
    pub json: bool,
    /// Print the JSON schema of a settings file instead
    #[arg(long)]
    pub schema: bool,
}

/// What the console shows.
#[derive(Clone, Copy, Debug, Default, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
pub struct OutputWords {
    /// Print the result alone
    #[arg(short, long, help_heading = "Output", conflicts_with = "json")]
    pub quiet: bool,
    /// Print one event a line, as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Do not show the agent's output, only keep it
    #[arg(
        long,
        visible_alias = "no-stream-agent-output",
        help_heading = "Output"
    )]
    pub no_stream: bool,
    /// Show the agent's stream of events as it is
    #[arg(long, help_heading = "Output")]
    pub raw: bool,
    /// Not to be typed: there is nothing to do next.
    #[arg(skip)]
    pub no_next: bool,
    /// Not to be typed: whoever looks on comes and goes.
    #[arg(skip)]
    pub in_window: bool,
}

/// `ralph resume`
#[derive(Debug, Args)]
pub struct ResumeWords {
    /// The loop
    #[arg(required_unless_present = "all")]
    pub name: Option<String>,
    /// Every loop in the background that crashed, as after a restart of the machine
    #[arg(long, conflicts_with_all = ["name", "answer"])]
    pub all: bool,
    /// Words for the agent's next prompt, such as the answer that it waits for
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = words)]
    pub answer: Option<String>,
    /// Do not wait for the end of a limit or a rest: try at once
    #[arg(long)]
    pub now: bool,
    #[command(flatten)]
    pub output: OutputWords,
}

/// The supervisor of a loop in the background
#[derive(Debug, Args)]
pub struct SuperviseWords {
    /// The loop
    pub name: String,
    /// Where all loops live
    #[arg(long)]
    pub state_dir: PathBuf,
    /// The pipe that brings its environment
    #[arg(long)]
    pub environment: Option<PathBuf>,
}

/// A verb that takes a loop's name.
#[derive(Debug, Args)]
pub struct NameWords {
    /// The loop
    pub name: String,
}

/// `ralph status`
#[derive(Debug, Args)]
pub struct StatusWords {
    /// The loop
    pub name: String,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ralph ls`
#[derive(Debug, Args)]
pub struct LsWords {
    /// As a JSON array
    #[arg(long)]
    pub json: bool,
    /// The names alone
    #[arg(long, conflicts_with = "json")]
    pub names: bool,
}

/// `ralph logs`
#[derive(Debug, Args)]
pub struct LogsWords {
    /// The loop
    pub name: String,
    /// Go on as more comes, until the loop ends
    #[arg(short, long)]
    pub follow: bool,
    /// Of this iteration [default: the newest]
    #[arg(long, value_name = "N")]
    pub iteration: Option<u32>,
    /// The agent's stream of events as it is
    #[arg(long)]
    pub raw: bool,
}

/// `ralph set`
#[derive(Debug, Args)]
pub struct SetWords {
    /// The loop
    pub name: String,
    /// max-iterations=N, max-cost=USD, max-time=D or max-failures=N; 0 is no limit
    #[arg(value_name = "LIMIT=VALUE", required = true)]
    pub limits: Vec<String>,
}

/// `ralph rm`
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
pub struct RmWords {
    /// The loops
    #[arg(required_unless_present = "ended", conflicts_with = "ended")]
    pub name: Vec<String>,
    /// All loops that have ended, but those that wait for a person
    #[arg(long)]
    pub ended: bool,
    /// Only those that ended so long ago, as in 30d
    #[arg(long, value_name = "D", requires = "ended", conflicts_with = "name")]
    pub older_than: Option<Span>,
    /// Remove the worktree as well, and the branch that was made for it
    #[arg(long, conflicts_with = "keep_worktree")]
    pub worktree: bool,
    /// Remove the loop, and leave its worktree where it is
    #[arg(long)]
    pub keep_worktree: bool,
    /// Remove a worktree even if work is in it that is nowhere else
    #[arg(long, requires = "worktree")]
    pub force: bool,
}

/// `ralph say`
#[derive(Debug, Args)]
pub struct SayWords {
    /// The loop
    pub name: String,
    /// The words
    #[arg(required = true)]
    pub text: Vec<String>,
}

/// `ralph wait`
#[derive(Debug, Args)]
pub struct WaitWords {
    /// The loops; of several, the worst ending counts
    #[arg(id = "name", value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Give up after this time, with exit code 1 [default: never]
    #[arg(long, value_name = "D")]
    pub timeout: Option<Span>,
}

/// `ralph blocked`
#[derive(Debug, Args)]
pub struct BlockedWords {
    /// Why
    #[arg(required = true)]
    pub why: Vec<String>,
}

/// `ralph demo`
#[derive(Debug, Args)]
pub struct DemoWords {
    /// Keep the demonstration's directory
    #[arg(long)]
    pub keep: bool,
}

impl RunWords {
    /// What these words say of settings.
    pub fn layer(&self) -> Layer {
        let mut knobs = self.knobs.clone();
        if self.yolo {
            knobs.set("approve", &"all".into());
        }
        if self.stream_agent_output && !knobs.has("stream") {
            knobs.set("stream", &true.into());
        }
        knobs.layer()
    }

    /// What these words say of the work itself.
    pub fn errand(&self, workspace: PathBuf, config_dir: Option<PathBuf>) -> Errand {
        Errand {
            task: (!self.task.is_empty()).then(|| self.task.join(" ")),
            command: self.command.clone(),
            workspace,
            config_dir,
        }
    }
}
