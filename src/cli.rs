//! The words: what can be typed, and nothing about what it means.

use crate::config::units::{Backoff, Span, amount, count, words};
use crate::config::{Errand, Settings};
use crate::engine::plan::{Level, OnFail};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
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
    #[command(after_help = "Durations read 90, 90s, 5m or 2h. For example:\n  \
        ralph run \"Make the tests pass.\" --check \"cargo test\" --max-time 2h -- claude -p")]
    Run(Box<RunWords>),
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
    /// For agents: claim that the work is done
    Done,
    /// For agents: say that a person is needed
    Blocked(BlockedWords),
    /// Show a whole loop on a scripted agent: real git, real checks, no account
    Demo(DemoWords),
    #[command(name = "__script", hide = true)]
    #[expect(missing_docs, reason = "hidden: the scripted agent's own process")]
    Script { file: PathBuf },
    #[command(name = "__sleeper", hide = true)]
    #[expect(missing_docs, reason = "hidden: a scripted agent's grandchild")]
    Sleeper {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// `ralph run`
#[derive(Debug, Default, Args)]
#[expect(missing_docs, reason = "the doc comments are the help's words")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed")]
pub struct RunWords {
    /// What to do, in words; beside a prompt file it is the title
    #[arg(value_name = "TASK", help_heading = "Task")]
    pub task: Vec<String>,
    /// What to do, as one text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = words, help_heading = "Task")]
    pub prompt: Option<String>,
    /// What to do, in a file that is read anew for every iteration [default: PROMPT.md if it exists]
    #[arg(long, visible_alias = "spec", value_name = "PATH", help_heading = "Task")]
    pub prompt_file: Option<PathBuf>,
    /// The loop's name: a-z, 0-9, _ and - [default: the directory's name and a number]
    #[arg(long, value_name = "NAME", help_heading = "Task")]
    pub name: Option<String>,

    /// The claim asked of the agent [default: COMPLETE where checks cannot prove the work]
    #[arg(
        long,
        visible_aliases = ["completion-promise", "completion-tag", "completion-response"],
        value_name = "TEXT",
        help_heading = "Done when"
    )]
    pub promise: Option<String>,
    /// Ask for no promise
    #[arg(long, help_heading = "Done when")]
    pub no_promise: bool,
    /// Take a line of output that matches as the claim, and stop the agent there
    #[arg(long, value_name = "REGEX", help_heading = "Done when")]
    pub done_pattern: Option<String>,
    /// Take the existence of a file as the claim
    #[arg(long, value_name = "PATH", help_heading = "Done when")]
    pub done_file: Option<PathBuf>,

    /// A command that must exit 0, run with `sh -c` in the workspace; repeatable
    #[arg(long, value_name = "CMD", help_heading = "Checks")]
    pub check: Vec<String>,
    /// How long a check may take [default: 10m]
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = "Checks")]
    pub check_timeout: Option<Span>,
    /// How a red check's output enters the next prompt [default: append]
    #[arg(long, value_name = "HOW", help_heading = "Checks")]
    pub on_fail: Option<OnFailWord>,
    /// Do not run the checks before the first iteration
    #[arg(long, help_heading = "Checks")]
    pub no_preflight: bool,

    /// Stop after so many iterations; 0 is no limit [default: 25]
    #[arg(
        short = 'm',
        long,
        visible_alias = "maximum-iterations",
        value_name = "N",
        allow_hyphen_values = true,
        value_parser = count::<u32>,
        help_heading = "Limits"
    )]
    pub max_iterations: Option<u32>,
    /// Stop when the agent has reported so many dollars; 0 is no limit [default: 0]
    #[arg(long, value_name = "USD", allow_hyphen_values = true, value_parser = amount, help_heading = "Limits")]
    pub max_cost: Option<f64>,
    /// Run although nobody can tell what the agent costs
    #[arg(long, help_heading = "Limits")]
    pub allow_unknown_cost: bool,
    /// Stop after so much active time; 0 is no limit [default: 0]
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = "Limits")]
    pub max_time: Option<Span>,
    /// Stop after so many failures in a row; 0 is no limit [default: 5]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count::<u32>, help_heading = "Limits")]
    pub max_failures: Option<u32>,
    /// Stop an iteration that takes longer; 0 is never [default: 2h]
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = "Limits")]
    pub iteration_timeout: Option<Span>,
    /// Stop an iteration that prints nothing for so long; 0 is never [default: 0]
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = "Limits")]
    pub inactivity_timeout: Option<Span>,

    /// Rest between iterations [default: 0]
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = "Rest")]
    pub delay: Option<Span>,
    /// Rest after failures: the first, doubled each time up to the second [default: 1s..300s]
    #[arg(long, value_name = "BASE..CAP", allow_hyphen_values = true, help_heading = "Rest")]
    pub backoff: Option<Backoff>,

    /// A scripted agent: script:FILE
    #[arg(long, value_name = "NAME", help_heading = "Agent")]
    pub agent: Option<String>,
    /// The agent's command, run as it is; the prompt is its standard input
    #[arg(last = true, value_name = "CMD ARGS", help_heading = "Agent")]
    pub command: Vec<String>,
    /// The exit code by which the agent says that it waits and must not be restarted [default: 42]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=255), help_heading = "Agent")]
    pub exit_waiting: Option<i32>,
    /// What the prompt carries besides the task [default: full]
    #[arg(long, value_name = "LEVEL", help_heading = "Agent")]
    pub context: Option<LevelWord>,
    /// How much of the diff the prompt carries, in characters [default: 5000]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count::<usize>, help_heading = "Agent")]
    pub diff_chars: Option<usize>,
    /// How much of each red check's output the prompt carries, in characters [default: 2000]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count::<usize>, help_heading = "Agent")]
    pub output_chars: Option<usize>,

    /// Allow another loop in the same workspace
    #[arg(long, help_heading = "Where")]
    pub share_workspace: bool,
    /// Print the plan and the first prompt, and start nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputWords,
}

/// What the console shows.
#[derive(Clone, Copy, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed")]
pub struct OutputWords {
    /// Print the result alone
    #[arg(short, long, help_heading = "Output", conflicts_with = "json")]
    pub quiet: bool,
    /// Print one event a line, as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Do not show the agent's output, only keep it
    #[arg(long, visible_alias = "no-stream-agent-output", help_heading = "Output")]
    pub no_stream: bool,
    /// Show the agent's output as it comes; this is the default
    #[arg(long, hide = true, overrides_with = "no_stream", action = ArgAction::SetTrue)]
    pub stream_agent_output: bool,
    /// Not to be typed: there is nothing to do next.
    #[arg(skip)]
    pub no_next: bool,
}

/// `ralph resume`
#[derive(Debug, Args)]
#[expect(missing_docs, reason = "the doc comments are the help's words")]
pub struct ResumeWords {
    /// The loop
    pub name: String,
    /// Words for the agent's next prompt, such as the answer that it waits for
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = words)]
    pub answer: Option<String>,
    #[command(flatten)]
    pub output: OutputWords,
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

/// `--on-fail`
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the words explain themselves")]
pub enum OnFailWord {
    Append,
    Prepend,
    Replace,
}

/// `--context`
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the words explain themselves")]
pub enum LevelWord {
    None,
    Feedback,
    Full,
}

impl RunWords {
    /// What these words say of settings.
    pub fn settings(&self) -> Settings {
        Settings {
            max_iterations: self.max_iterations,
            max_cost: self.max_cost,
            max_time: self.max_time,
            max_failures: self.max_failures,
            iteration_timeout: self.iteration_timeout,
            inactivity_timeout: self.inactivity_timeout,
            check: (!self.check.is_empty()).then(|| self.check.clone()),
            check_timeout: self.check_timeout,
            on_fail: self.on_fail.map(|word| match word {
                OnFailWord::Append => OnFail::Append,
                OnFailWord::Prepend => OnFail::Prepend,
                OnFailWord::Replace => OnFail::Replace,
            }),
            preflight: self.no_preflight.then_some(false),
            promise: self.promise.clone(),
            no_promise: self.no_promise.then_some(true),
            done_pattern: self.done_pattern.clone(),
            done_file: self.done_file.clone(),
            delay: self.delay,
            backoff: self.backoff,
            context: self.context.map(|word| match word {
                LevelWord::None => Level::None,
                LevelWord::Feedback => Level::Feedback,
                LevelWord::Full => Level::Full,
            }),
            diff_chars: self.diff_chars,
            output_chars: self.output_chars,
            exit_waiting: self.exit_waiting,
            allow_unknown_cost: self.allow_unknown_cost.then_some(true),
            share_workspace: self.share_workspace.then_some(true),
            ..Settings::default()
        }
    }

    /// What these words say of the work itself.
    pub fn errand(&self, workspace: PathBuf, config_dir: Option<PathBuf>) -> Errand {
        Errand {
            task: (!self.task.is_empty()).then(|| self.task.join(" ")),
            prompt: self.prompt.clone(),
            prompt_file: self.prompt_file.clone(),
            agent: self.agent.clone(),
            command: self.command.clone(),
            workspace,
            config_dir,
        }
    }
}
