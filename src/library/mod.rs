//! Runs loops inside another program: configures, runs, observes and stops them.
//!
//! The host process is left alone: no signal handlers, no fork, no change of directory or
//! environment, no output, and no interference with children that ralph did not start.

mod error;
mod observer;
pub(crate) mod replay;
mod reply;
mod report;
mod stopper;

pub use error::Error;
pub use reply::Reply;
pub use report::{CheckResult, IterationReport, Report};
pub use stopper::Stopper;

use crate::agent::function::{AgentFunction, Turn, Waker};
use crate::config::keys::key;
use crate::config::validate::normalize;
use crate::config::{Config, Layer, LayerStack, Origin, PlanDraft, RunRequest};
use crate::engine::plan::{Approve, ContextLevel, SCRIPT, Sandbox};
use crate::engine::{Act, Event};
use crate::lifecycle::create::{self, Placement, PreparedLoop};
use crate::lifecycle::worktree_request::WorktreeRequest;
use crate::lifecycle::{handle, preconditions};
use crate::runner::reactor::{Embedding, Reactor};
use crate::runner::{AgentHost, Runner};
use crate::store;
use crate::store::{Journal, StateDir, is_valid_name};
use observer::HostObserver;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Configures and runs a loop: the task, the checks that prove it done, and the limits.
///
/// Every value that you do not set has the same default as in the `ralph` program. Settings files
/// are not read. A loop ends when every check is green and the agent claims that the task is done,
/// when a limit is reached, or when it is stopped.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = tempfile::tempdir()?;
/// # std::fs::create_dir(place.path().join("work"))?;
/// let report = ralph::Loop::new("Write a greeting into hello.txt.")
///     .workspace(place.path().join("work"))
///     .state_dir(place.path().join("state"))
///     .check("grep -q hello hello.txt")
///     .until_green()
///     .max_iterations(5)
///     .run_with(|turn: &ralph::Turn| {
///         std::fs::write(turn.workspace().join("hello.txt"), "hello, reactor\n")
///     })?;
/// assert!(report.success);
/// assert_eq!(report.stop_reason, ralph::StopReason::AllChecksPassed);
/// assert_eq!(report.iterations.len(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a loop does nothing until it is run"]
pub struct Loop<'a> {
    task: Option<String>,
    workspace: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    name: Option<String>,
    values: Map<String, Value>,
    checks: Vec<Value>,
    /// The error for the first invalid value. `run` returns it, so that setters can be chained.
    invalid: Option<Error>,
    stopper: Stopper,
    on_event: Box<dyn FnMut(&Event) + Send + 'a>,
    on_act: Box<dyn FnMut(&Act<'_>) + Send + 'a>,
}

enum AgentChoice {
    Command(Vec<String>),
    Known(String),
    Function(AgentFunction),
}

impl<'a> Loop<'a> {
    /// Creates a loop for this task.
    pub fn new(task: impl Into<String>) -> Self {
        Self {
            task: Some(task.into()),
            ..Self::empty()
        }
    }

    /// Creates a loop for the task in a file, which is read again before every iteration. A
    /// relative path is resolved against the workspace.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::empty().set("prompt-file", json!(path.to_string_lossy()))
    }

    fn empty() -> Self {
        Self {
            task: None,
            workspace: None,
            state_dir: None,
            name: None,
            values: Map::new(),
            checks: Vec::new(),
            invalid: None,
            stopper: Stopper::default(),
            on_event: Box::new(|_| {}),
            on_act: Box::new(|_| {}),
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "each caller creates the value for this call"
    )]
    fn set(mut self, name: &str, value: Value) -> Self {
        match normalize(key(name), &value, name) {
            Ok(settled) => drop(self.values.insert(name.into(), settled)),
            Err(error) => {
                let error = Error::Usage {
                    what: format!("{} {}", error.path, error.message),
                    hint: error.hint.text(false),
                };
                self.invalid.get_or_insert(error);
            }
        }
        self
    }

    fn set_duration(self, name: &str, time: Duration) -> Self {
        self.set(name, json!(millis(time)))
    }

    /// Sets the directory in which the agent and the checks run. Default: the current directory.
    pub fn workspace(mut self, dir: impl Into<PathBuf>) -> Self {
        self.workspace = Some(dir.into());
        self
    }

    /// Sets the directory for journals and logs. Default: `$RALPH_STATE_DIR`, or the platform's
    /// state directory if it is not set.
    pub fn state_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(dir.into());
        self
    }

    /// Sets the loop's name. Default: the workspace's directory name and a number, as in `app-1`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a shell command that must exit 0 before the task counts as done.
    pub fn check(mut self, command: impl Into<String>) -> Self {
        self.checks.push(json!({ "command": command.into() }));
        self
    }

    /// Sets the time limit for each check. A check that takes longer fails. Zero means no limit.
    pub fn check_timeout(self, time: Duration) -> Self {
        self.set_duration("check-timeout", time)
    }

    /// Sets whether the checks run once before the first iteration. Default: true.
    pub fn preflight(self, run: bool) -> Self {
        self.set("preflight", json!(run))
    }

    /// Sets the text that the agent must write in `<promise>…</promise>` when the whole task is
    /// done. Default: `COMPLETE`.
    pub fn promise(self, text: impl Into<String>) -> Self {
        self.set("promise", json!(text.into()))
    }

    /// Ends the loop as soon as every check is green, without a claim from the agent. Requires
    /// checks. If all are green before the first iteration, no iteration runs. In git, checks that
    /// turn green on an unchanged working tree are not enough.
    pub fn until_green(self) -> Self {
        self.set("until-green", json!(true))
    }

    /// Does not ask for a promise. With checks, this is the same as [`Loop::until_green`]. A loop
    /// without checks runs to its limit.
    pub fn no_promise(self) -> Self {
        self.set("no-promise", json!(true))
    }

    /// Sets a regular expression. An output line that matches it claims that the task is done.
    pub fn done_pattern(self, pattern: impl Into<String>) -> Self {
        self.set("done-pattern", json!(pattern.into()))
    }

    /// Limits the number of iterations. 0 means no limit.
    pub fn max_iterations(self, max: u32) -> Self {
        self.set("max-iterations", json!(max))
    }

    /// Limits the number of consecutive failures. 0 means no limit.
    pub fn max_failures(self, max: u32) -> Self {
        self.set("max-failures", json!(max))
    }

    /// Limits the number of consecutive iterations that change neither files nor failures. 0 means
    /// no limit. Only loops with checks stall.
    pub fn max_stalls(self, max: u32) -> Self {
        self.set("max-stalls", json!(max))
    }

    /// Limits the cost in dollars, as reported by the agent. 0 means no limit.
    pub fn max_cost(self, usd: f64) -> Self {
        // JSON has no NaN or infinity. As a string, such a value is rejected instead of lost.
        self.set(
            "max-cost",
            if usd.is_finite() {
                json!(usd)
            } else {
                json!(usd.to_string())
            },
        )
    }

    /// Limits the number of tokens, including cached ones, as reported by the agent. 0 means no
    /// limit.
    pub fn max_tokens(self, max: u64) -> Self {
        self.set("max-tokens", json!(max))
    }

    /// Limits the loop's active time, which excludes pauses and waits for a limit to reset. Zero
    /// means no limit.
    pub fn max_time(self, time: Duration) -> Self {
        self.set_duration("max-time", time)
    }

    /// Limits the duration of each iteration. Zero means no limit.
    pub fn iteration_timeout(self, time: Duration) -> Self {
        self.set_duration("iteration-timeout", time)
    }

    /// Ends an iteration whose agent has shown no activity for this long. Zero means never.
    pub fn inactivity_timeout(self, time: Duration) -> Self {
        self.set_duration("inactivity-timeout", time)
    }

    /// Sets the delay between iterations.
    pub fn delay(self, time: Duration) -> Self {
        self.set_duration("delay", time)
    }

    /// Sets the delay after a failure. The delay starts at `first` and doubles with each further
    /// failure, up to `longest`.
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        self.set(
            "backoff",
            json!(format!("{}..{}", millis(first), millis(longest))),
        )
    }

    /// Sets how much ralph adds to the task in the prompt.
    pub fn context(self, level: ContextLevel) -> Self {
        self.set("context", json!(level))
    }

    /// Sets the model of a known agent. Default: the agent's own choice.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.set("model", json!(model.into()))
    }

    /// Sets which actions a known agent may take without asking.
    pub fn approve(self, level: Approve) -> Self {
        self.set("approve", json!(level))
    }

    /// Runs a command or a known agent in a sandbox, in which it can write only to the workspace and
    /// its own files. A sandbox that is not available is an error, and so is one for a function.
    pub fn sandbox(self, kind: Sandbox) -> Self {
        self.set("sandbox", json!(kind))
    }

    /// Allows other loops to run in the same workspace.
    pub fn share_workspace(self) -> Self {
        self.set("share-workspace", json!(true))
    }

    /// Runs the loop in its own git worktree, created from HEAD on a new branch `ralph/<name>`.
    /// Changes that an iteration leaves uncommitted are committed there. The worktree is kept after
    /// the run.
    pub fn worktree(self) -> Self {
        self.set("worktree", json!(true))
    }

    /// Runs the loop in its own git worktree, like [`Loop::worktree`], but on this branch. An
    /// existing branch is continued.
    pub fn worktree_on(self, branch: impl Into<String>) -> Self {
        self.set("worktree", json!(branch.into()))
    }

    /// Sets two grace periods: `term` is the time between SIGTERM and SIGKILL. `survivors` is the
    /// time after that for processes to exit or for a function to return. If they do not, the loop
    /// ends as fatal.
    pub fn grace(self, term: Duration, survivors: Duration) -> Self {
        self.set_duration("grace-term", term)
            .set_duration("grace-survivor", survivors)
    }

    /// Calls `callback` with each event after it is recorded, on the thread that runs the loop. The
    /// loop waits for the callback, so keep it short.
    pub fn on_event(mut self, callback: impl FnMut(&Event) + Send + 'a) -> Self {
        self.on_event = Box::new(callback);
        self
    }

    /// Calls `callback` with each act of the agent as it happens, on the thread that runs the loop.
    pub fn on_act(mut self, callback: impl FnMut(&Act<'_>) + Send + 'a) -> Self {
        self.on_act = Box::new(callback);
        self
    }

    /// Returns a handle that stops or pauses this loop from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Runs the loop with a command as its agent. The command is started once per iteration and
    /// reads the prompt from standard input. Blocks until the loop ends or pauses.
    pub fn run_command(
        self,
        command: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Report, Error> {
        self.run(AgentChoice::Command(
            command.into_iter().map(Into::into).collect(),
        ))
    }

    /// Runs the loop with an agent that ralph knows, such as `claude` or `codex`, and with the
    /// arguments that the `ralph` program would use. Blocks until the loop ends or pauses.
    pub fn run_agent(self, name: impl Into<String>) -> Result<Report, Error> {
        self.run(AgentChoice::Known(name.into()))
    }

    /// Runs the loop with a function as its agent. The function is called once per iteration, on
    /// its own thread, and never concurrently. It returns the agent's final message, in which ralph
    /// looks for a promise. An error or a panic fails the iteration. Blocks until the loop ends or
    /// pauses.
    pub fn run_with<R: Into<Reply>>(
        self,
        mut agent: impl FnMut(&Turn) -> R + Send + 'static,
    ) -> Result<Report, Error> {
        self.run(AgentChoice::Function(Arc::new(Mutex::new(
            move |turn: &Turn| agent(turn).into().0,
        ))))
    }

    fn run(mut self, choice: AgentChoice) -> Result<Report, Error> {
        if let Some(error) = self.invalid.take() {
            return Err(error);
        }
        if let Some(name) = self.name.as_ref().filter(|name| !is_valid_name(name)) {
            return Err(store::StoreError::InvalidName { name: name.clone() }.into());
        }
        let (draft, function, placement) = self.draft_plan(choice)?;
        let state_dir = match &self.state_dir {
            Some(dir) => StateDir::new(std::path::absolute(dir)?),
            None => StateDir::locate()?,
        };
        preconditions::check_sandbox(draft.plan(), state_dir.root())?;
        let mut warnings = Vec::new();
        let PreparedLoop { dir, locks, .. } = create::create_loop(
            &state_dir,
            self.name.as_deref(),
            draft,
            placement,
            &mut |warning| warnings.push(warning),
        )?;
        let opened = Journal::open(&dir)?;
        let waker = Arc::new(Waker::new()?);
        let requests = self.stopper.connect(&waker);
        let reactor = Reactor::embedded(Embedding {
            id: opened.header.id.clone(),
            exemptions: handle::exemptions(&state_dir),
            waker,
            requests,
        });
        let host = function.map_or(AgentHost::Process, AgentHost::Function);
        let mut observer = HostObserver::new(&dir, &opened, self.on_event, self.on_act);
        observer.add_warnings(warnings);
        let result =
            Runner::open(dir.clone(), opened, reactor, host, &mut observer).map(Runner::run);
        drop(locks);
        let (exit, header, state) = result?;
        exit?;
        Ok(observer.report(&dir, &header, &state))
    }

    /// Creates the plan draft from the builder's values.
    fn draft_plan(
        &mut self,
        choice: AgentChoice,
    ) -> Result<(PlanDraft, Option<AgentFunction>, Placement), Error> {
        let workspace = match self.workspace.take() {
            Some(dir) => dir,
            None => std::env::current_dir()?,
        };
        let found = std::fs::canonicalize(&workspace)
            .ok()
            .filter(|dir| dir.is_dir());
        let Some(workspace) = found else {
            return Err(Error::Usage {
                what: format!("the workspace {} is not a directory", workspace.display()),
                hint: "create the directory, or pass another one to workspace".into(),
            });
        };
        let mut request = RunRequest {
            task: self.task.take(),
            workspace,
            ..RunRequest::default()
        };
        if !self.checks.is_empty() {
            self.values
                .insert("checks".into(), std::mem::take(&mut self.checks).into());
        }
        let mut function = None;
        match choice {
            AgentChoice::Command(command) => {
                request.command = command;
                // A host program has no terminal that the agent could use.
                self.values.insert("pty".into(), json!(false));
            }
            AgentChoice::Known(name) => {
                self.values.insert("agent".into(), json!({ "name": name }));
            }
            AgentChoice::Function(agent) => {
                function = Some(agent);
                request.function = true;
                // If a function reports no cost, assume that it spends nothing.
                self.values.insert("allow-unknown-cost".into(), json!(true));
            }
        }
        if request.command.is_empty() && !request.function && !self.values.contains_key("agent") {
            return Err(Error::Usage {
                what: "the agent's command is empty".into(),
                hint: "pass a program and its arguments to run_command".into(),
            });
        }
        let mut stack = LayerStack::defaults();
        stack.push(Layer {
            origin: Origin::Flag,
            values: std::mem::take(&mut self.values),
        });
        let draft = Config::new(stack)?.draft_plan(&request)?;
        if draft
            .plan()
            .agent
            .command
            .first()
            .is_some_and(|program| program.starts_with(SCRIPT))
        {
            return Err(Error::Usage {
                what: "the library cannot run scripted agents; the ralph program can".into(),
                hint: "use a function, or run the `ralph` program as the command".into(),
            });
        }
        let worktree = WorktreeRequest::from_draft(&draft)?;
        let check = if worktree.is_some() {
            preconditions::check_installed
        } else {
            preconditions::check_ready
        };
        check(&draft)?;
        Ok((draft, function, Placement::hosted(worktree)))
    }
}

/// Formats a duration for the settings. Rounds up to milliseconds, because zero means no limit.
fn millis(time: Duration) -> String {
    format!("{}ms", time.as_nanos().div_ceil(1_000_000))
}
