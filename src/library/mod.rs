//! How does another program run a loop? The front door for hosts: configure, run, observe, stop.
//!
//! Everything here stays inside the host's manners: no signal handler, no fork of the host, no change of its
//! directory or environment, no word on its terminal, and no hand on a child that ralph did not start.

mod error;
mod observer;
pub mod replay;
mod reply;
mod report;
mod stopper;

pub use error::Error;
pub use reply::Reply;
pub use report::{CheckResult, IterationReport, Report};
pub use stopper::Stopper;

use crate::agent::function::{Bell, Function, Turn};
use crate::config;
use crate::config::keys::key;
use crate::config::validate::settle;
use crate::config::{Errand, Layer, Origin, Stack};
use crate::engine::plan::{Agent, Approve, Level, Plan, SCRIPT};
use crate::engine::{Act, Event};
use crate::lifecycle::create::{self, Place, Prepared};
use crate::lifecycle::placement::Wanted;
use crate::lifecycle::{handle, preconditions};
use crate::runner::Runner;
use crate::runner::reactor::{Host, World};
use crate::store;
use crate::store::{Home, Journal, valid_name};
use observer::Observer;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A loop to be run: what is to be done, what proves it, and where it stops at the latest.
///
/// Whatever is not said here is as in the program's own defaults; settings files are not read. A loop ends when
/// every check is green and the work is claimed or shown, or when a limit is reached.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = tempfile::tempdir()?;
/// # std::fs::create_dir(place.path().join("work"))?;
/// let report = ralph::Loop::new("Write a greeting into hello.txt.")
///     .workspace(place.path().join("work"))
///     .state_dir(place.path().join("state"))
///     .check("grep -q hello hello.txt")
///     .max_iterations(5)
///     .run_with(|turn: &ralph::Turn| {
///         std::fs::write(turn.workspace().join("hello.txt"), "hello, world\n")
///     })?;
/// assert!(report.success);
/// assert_eq!(report.stop_reason, "all_checks_passed");
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
    /// The first value that was wrong: told when the loop is run, so that words can follow one another.
    wrong: Option<Error>,
    stopper: Stopper,
    on_event: Box<dyn FnMut(&Event) + Send + 'a>,
    on_act: Box<dyn FnMut(&Act<'_>) + Send + 'a>,
}

/// Who does the work.
enum Who {
    Command(Vec<String>),
    Known(String),
    Function(Function),
}

impl<'a> Loop<'a> {
    /// A loop on this task.
    pub fn new(task: impl Into<String>) -> Self {
        Self {
            task: Some(task.into()),
            ..Self::empty()
        }
    }

    /// A loop on the task in this file, which is read anew for every iteration. A relative path begins at the
    /// workspace.
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
            wrong: None,
            stopper: Stopper::default(),
            on_event: Box::new(|_| {}),
            on_act: Box::new(|_| {}),
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "each caller makes the value for this"
    )]
    fn set(mut self, name: &str, value: Value) -> Self {
        match settle(key(name), &value, name) {
            Ok(settled) => drop(self.values.insert(name.into(), settled)),
            Err(flaw) => {
                let error = Error::Usage {
                    what: format!("{} {}", flaw.place, flaw.error),
                    hint: flaw.hint,
                };
                self.wrong.get_or_insert(error);
            }
        }
        self
    }

    fn set_time(self, name: &str, time: Duration) -> Self {
        self.set(name, json!(millis(time)))
    }

    /// The directory in which agent and checks work; the host's current one if none is given.
    pub fn workspace(mut self, dir: impl Into<PathBuf>) -> Self {
        self.workspace = Some(dir.into());
        self
    }

    /// Where the loop's journal and logs are kept, instead of `$RALPH_STATE_DIR` or the platform's place.
    pub fn state_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(dir.into());
        self
    }

    /// The loop's name; without one it is the workspace's with a number.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A shell command that must exit 0 before the work counts as done. Each call adds one.
    pub fn check(mut self, command: impl Into<String>) -> Self {
        self.checks.push(json!({ "command": command.into() }));
        self
    }

    /// How long a check may take; zero is for ever.
    pub fn check_timeout(self, time: Duration) -> Self {
        self.set_time("check-timeout", time)
    }

    /// Whether the checks run once before the first iteration, as they do by default: one that is red then
    /// proves the work when it turns green.
    pub fn preflight(self, run: bool) -> Self {
        self.set("preflight", json!(run))
    }

    /// What the agent is to promise, in `<promise>…</promise>`, when all of the work is done.
    pub fn promise(self, words: impl Into<String>) -> Self {
        self.set("promise", json!(words.into()))
    }

    /// Asks for no promise: green checks alone decide, and without any the loop runs to its limit.
    pub fn no_promise(self) -> Self {
        self.set("no-promise", json!(true))
    }

    /// A pattern of a line by which the agent says that all of the work is done.
    pub fn done_pattern(self, pattern: impl Into<String>) -> Self {
        self.set("done-pattern", json!(pattern.into()))
    }

    /// How many iterations there are at the most; 0 is no limit.
    pub fn max_iterations(self, max: u32) -> Self {
        self.set("max-iterations", json!(max))
    }

    /// How many iterations in a row may fail; 0 is no limit.
    pub fn max_failures(self, max: u32) -> Self {
        self.set("max-failures", json!(max))
    }

    /// How many dollars may be spent, by the agent's own report; 0 is no limit.
    pub fn max_cost(self, usd: f64) -> Self {
        // Between the two, JSON would lose a number that is none, and the limit with it.
        self.set(
            "max-cost",
            if usd.is_finite() {
                json!(usd)
            } else {
                json!(usd.to_string())
            },
        )
    }

    /// How long the loop may be at work; zero is for ever.
    pub fn max_time(self, time: Duration) -> Self {
        self.set_time("max-time", time)
    }

    /// How long one iteration may take; zero is for ever.
    pub fn iteration_timeout(self, time: Duration) -> Self {
        self.set_time("iteration-timeout", time)
    }

    /// How long the agent may be silent before its iteration is ended; zero is for ever.
    pub fn inactivity_timeout(self, time: Duration) -> Self {
        self.set_time("inactivity-timeout", time)
    }

    /// The rest between iterations.
    pub fn delay(self, time: Duration) -> Self {
        self.set_time("delay", time)
    }

    /// The rest after a first failure, doubled with each further one, and the longest.
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        self.set(
            "backoff",
            json!(format!("{}..{}", millis(first), millis(longest))),
        )
    }

    /// What the prompt carries besides the task.
    pub fn context(self, level: Level) -> Self {
        self.set("context", json!(level))
    }

    /// Which model a known agent is to use.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.set("model", json!(model.into()))
    }

    /// What a known agent may do without asking.
    pub fn approve(self, level: Approve) -> Self {
        self.set("approve", json!(level))
    }

    /// Allows another loop in the same workspace.
    pub fn share_workspace(self) -> Self {
        self.set("share-workspace", json!(true))
    }

    /// Works in a git worktree of the loop's own, made from HEAD of the workspace's repository, on a new branch
    /// `ralph/<name>`. What an iteration leaves uncommitted is committed there. It stays when the loop has ended.
    pub fn worktree(self) -> Self {
        self.set("worktree", json!(true))
    }

    /// The same on this branch, which is made unless it is there.
    pub fn worktree_on(self, branch: impl Into<String>) -> Self {
        self.set("worktree", json!(branch.into()))
    }

    /// How long an agent that is told to go has before it is killed, and how long what outlives that, or a
    /// function that does not return, is waited for before the loop gives up.
    pub fn grace(self, term: Duration, survivors: Duration) -> Self {
        self.set_time("grace-term", term)
            .set_time("grace-survivor", survivors)
    }

    /// Told of every event of the loop once it is written down and judged, on the thread that runs the loop. The
    /// loop waits for it, so it had better be quick.
    pub fn on_event(mut self, observe: impl FnMut(&Event) + Send + 'a) -> Self {
        self.on_event = Box::new(observe);
        self
    }

    /// Told of what the agent does, as it does it, on the thread that runs the loop.
    pub fn on_act(mut self, observe: impl FnMut(&Act<'_>) + Send + 'a) -> Self {
        self.on_act = Box::new(observe);
        self
    }

    /// What stops or pauses this loop from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Runs the loop with a command as its agent: started anew in every iteration, its prompt on standard input.
    pub fn run_command(
        self,
        command: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Report, Error> {
        self.run(Who::Command(command.into_iter().map(Into::into).collect()))
    }

    /// Runs the loop with an agent that ralph knows by name, such as `claude` or `codex`, called as the program
    /// calls it.
    pub fn run_agent(self, name: impl Into<String>) -> Result<Report, Error> {
        self.run(Who::Known(name.into()))
    }

    /// Runs the loop with a function as its agent. It is called anew in every iteration, in a thread of its own,
    /// and never twice at once. What it returns are its final words, where a promise is looked for; an error, or
    /// a panic, is a failed iteration.
    pub fn run_with<R: Into<Reply>>(
        self,
        mut agent: impl FnMut(&Turn) -> R + Send + 'static,
    ) -> Result<Report, Error> {
        self.run(Who::Function(Arc::new(Mutex::new(move |turn: &Turn| {
            agent(turn).into().0
        }))))
    }

    fn run(mut self, who: Who) -> Result<Report, Error> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        if let Some(name) = self.name.as_ref().filter(|name| !valid_name(name)) {
            return Err(store::Error::BadName { name: name.clone() }.into());
        }
        let (plan, function, place) = self.plan(who)?;
        let home = match &self.state_dir {
            Some(dir) => Home::at(std::path::absolute(dir)?),
            None => Home::locate()?,
        };
        let Prepared {
            dir, locks, notes, ..
        } = create::prepare(&home, self.name.as_deref(), plan, place)?;
        let opened = Journal::open(&dir)?;
        let bell = Arc::new(Bell::new()?);
        let wishes = self.stopper.connect(&bell);
        let world = World::inside(Host {
            id: opened.header.id.clone(),
            friends: handle::friends(&home),
            bell,
            wishes,
            function,
        });
        let mut observer = Observer::new(&dir, &opened, self.on_event, self.on_act);
        observer.note(notes);
        let left = Runner::open(dir.clone(), opened, world, &mut observer).and_then(Runner::run);
        drop(locks);
        let (_, header, state) = left?;
        Ok(observer.report(&dir, &header, &state))
    }

    /// The one place where what was said here becomes a plan.
    fn plan(&mut self, who: Who) -> Result<(Plan, Option<Function>, Place), Error> {
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
                hint: "make it first".into(),
            });
        };
        let mut errand = Errand {
            task: self.task.take(),
            workspace,
            ..Errand::default()
        };
        if !self.checks.is_empty() {
            self.values
                .insert("checks".into(), std::mem::take(&mut self.checks).into());
        }
        let mut function = None;
        match who {
            Who::Command(command) => {
                errand.command = command;
                // Nobody is there to look at a screen, whatever the command would be for a person.
                self.values.insert("pty".into(), json!(false));
            }
            Who::Known(name) => drop(self.values.insert("agent".into(), json!({ "name": name }))),
            Who::Function(agent) => {
                function = Some(agent);
                errand.command = vec![FUNCTION.into()];
                // It tells what it spends, or it spends nothing.
                self.values.insert("allow-unknown-cost".into(), json!(true));
            }
        }
        if errand.command.is_empty() && !self.values.contains_key("agent") {
            return Err(Error::Usage {
                what: "the command is empty".into(),
                hint: "name a program".into(),
            });
        }
        let mut stack = Stack::defaults();
        stack.push(Layer {
            origin: Origin::Flag,
            values: std::mem::take(&mut self.values),
        });
        let mut plan = config::plan(&stack, &errand)?;
        if function.is_some() {
            plan.agent = Agent {
                name: FUNCTION.into(),
                reports_cost: true,
                ..Agent::default()
            };
        }
        if plan
            .agent
            .command
            .first()
            .is_some_and(|program| program.starts_with(SCRIPT))
        {
            return Err(Error::Usage {
                what: "a scripted agent is played by the program ralph, not by its library".into(),
                hint: "use a function, or the command `ralph`".into(),
            });
        }
        let apart = Wanted::of(&stack, &plan.workspace)?;
        let look = if apart.is_some() {
            preconditions::installed
        } else {
            preconditions::ready
        };
        look(&plan, &stack)?;
        Ok((plan, function, Place::hosted(apart)))
    }
}

/// A time as settings have it. What is less than a millisecond is one: none at all would be for ever.
fn millis(time: Duration) -> String {
    format!("{}ms", time.as_nanos().div_ceil(1_000_000))
}

/// What an agent is called that is a function of its host.
const FUNCTION: &str = "a function of the host program";
