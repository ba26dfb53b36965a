//! The imperative shell around the engine: receives input, records events, and carries out orders.
//!
//! Each pass of [`Runner::run_until_exit`] reconciles what is running with the engine's orders,
//! then waits for input and records it. There is no policy here: the engine decides.
//!
//! | Part | Contents |
//! |---|---|
//! | [`recorder`] | journal, state, observer |
//! | [`clock`] | the loop's clock, and the runner's timers |
//! | [`reactor`] | signals, watched files, and the running [`job`] |
//! | [`host`] | where the agent runs |
//! | [`prompt`] | the next prompt, and the files of earlier prompts |
//! | [`bus_relay`] | messages between the agent, the loop and its project |
//! | [`children`] | child loops to wait for at the end |

mod agent;
mod agent_version;
mod bus_relay;
mod check;
mod checkpoint;
mod children;
mod clock;
mod console_keys;
mod ending;
mod host;
mod input;
mod job;
mod lease;
mod look;
pub(crate) mod notify;
mod owner;
mod poll_schedule;
mod probe;
mod process_spec;
mod prompt;
pub(crate) mod reactor;
pub(crate) mod receipt;
mod reconcile;
mod recorder;
#[cfg(feature = "cli")]
pub(crate) mod rerun;
mod scm;
pub(crate) mod session;
pub(crate) mod start_record;
mod task_files;
mod test_reporting;

pub(crate) use host::{AgentHost, HookCaller};

use crate::agent::decode::AgentProfile;
use crate::agent::task_dir::TaskDir;
use crate::engine::event::{Fault, Notice, Request, RequestSource};
use crate::engine::{Act, Event, ExitCode, Marker, Outcome, Phase, State, format};
use crate::git::TreeContent;
use crate::os;
use crate::process::signals::SignalEvent;
use crate::process::{orphans, pty};
use crate::proof::FileSnapshot;
use crate::proof::view::View;
use crate::sandbox::hooks::SandboxHooks;
use crate::store::{self, JournalHeader, JournalLine, LoopDir, OpenedJournal};
use bus_relay::BusRelay;
use children::ChildDrain;
use clock::Alarms;
use input::{Input, JobKey};
use notify::RestPayload;
use prompt::Prompts;
use reactor::Reactor;
use reconcile::Flow;
use recorder::Recorder;
use rustix::process::Signal;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use test_reporting::TestReporting;

/// Receives what a runner records, for display. The methods must not block the runner.
pub(crate) trait Observer {
    /// Receives an event that was recorded and applied to `state`.
    fn event(&mut self, line: &JournalLine, state: &State);
    /// Receives an act of the agent.
    fn act(&mut self, act: &Act<'_>);
    /// Runs periodically. `silent_for` is the time since the job's last activity, or `None` without
    /// a job. Returns the time until the next call, or `None` to wait for the next event.
    fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration>;
    /// Receives a warning for the user.
    fn warn(&mut self, text: &str);
    /// Learns whether the user's keys can be read from now on.
    fn keys_available(&mut self, _available: bool) {}
    /// Receives keys that the user has pressed. Requests to the loop go through its inbox.
    fn keys(&mut self, _keys: &[u8], _state: &State) {}
}

/// Why a runner exited.
#[derive(Debug, PartialEq)]
pub(crate) enum RunnerExit {
    Ended(Outcome),
    Paused,
    /// The next iteration runs in the client's session, which calls a hook when the turn ends.
    AwaitingTurn,
    /// The terminal was closed or the warden died. All processes were killed, and the journal has
    /// no ending.
    HungUp,
}

impl RunnerExit {
    /// Returns the exit code of the runner's process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Ended(outcome) => outcome.exit_code(),
            Self::Paused | Self::AwaitingTurn => ExitCode::Resumable,
            Self::HungUp => ExitCode::from_signal(Signal::HUP.as_raw()),
        }
    }
}

/// Why a runner failed.
#[derive(Debug)]
pub(crate) enum RunnerError {
    /// The journal could not be read or written.
    Store(store::StoreError),
    /// A file operation or system call failed.
    Io(io::Error),
    /// The lease of a loop of a fleet has expired, so another machine may be running it.
    LeaseExpired,
}

impl From<store::StoreError> for RunnerError {
    fn from(error: store::StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for RunnerError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs one loop. The caller must hold the loop's lock.
pub(crate) struct Runner<'a> {
    rec: Recorder<'a>,
    reactor: Reactor,
    host: AgentHost,
    alarms: Alarms,
    task_dir: TaskDir,
    prompts: Prompts,
    /// The content of the working tree; `None` outside git.
    content: OnceCell<Option<TreeContent>>,
    /// The view in which the checks run again; `None` outside the second look.
    view: Option<View>,
    /// The directories of hooks that a sandbox needs.
    hooks: OnceCell<SandboxHooks>,
    /// The files before the newest iteration's checks, outside git; `None` if they are not known.
    snapshot: Option<FileSnapshot>,
    /// The versions of the agents that this runner has started, by their index; `None` if unknown.
    versions: BTreeMap<usize, Option<String>>,
    /// What the running check was asked to report.
    reporting: TestReporting,
    /// The warning about the newest checkpoint, which is not repeated; empty if there is none.
    checkpoint_warning: String,
    bus: BusRelay,
    /// The child loops to wait for; `None` until the loop itself has finished.
    children: Option<ChildDrain>,
    /// The rules for reading each agent's output, in the order of the plan's agents.
    profiles: Vec<AgentProfile>,
    /// The time of the last check that found enough free disk space. `None` before the first.
    disk_checked_at: Option<Instant>,
    /// Builds the notifications of long rests; `None` if the runner does not notify.
    rest_payload: Option<RestPayload>,
}

impl<'a> Runner<'a> {
    /// Opens a loop, to continue where its journal ends.
    pub(crate) fn open(
        dir: LoopDir,
        opened: OpenedJournal,
        reactor: Reactor,
        host: AgentHost,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, RunnerError> {
        let rec = Recorder::open(dir, opened, observer)?;
        let plan = &rec.state.plan;
        Ok(Self {
            task_dir: TaskDir::new(&plan.workspace, &rec.header.name),
            prompts: Prompts::open(&rec),
            content: OnceCell::new(),
            view: None,
            hooks: OnceCell::new(),
            snapshot: None,
            versions: BTreeMap::new(),
            reporting: TestReporting::default(),
            checkpoint_warning: String::new(),
            bus: BusRelay::open(&rec),
            profiles: plan.agents().map(AgentProfile::new).collect(),
            rec,
            reactor,
            host,
            alarms: Alarms::default(),
            children: None,
            disk_checked_at: None,
            rest_payload: None,
        })
    }

    /// Runs until the loop ends, pauses or is hung up, or until an error prevents the runner from
    /// continuing. Returns the last known state in each case.
    pub(crate) fn run(mut self) -> (Result<RunnerExit, RunnerError>, JournalHeader, State) {
        let exit = self.recover().and_then(|()| self.run_until_exit());
        if exit.is_err() {
            self.stop_job();
        }
        if self.rec.is_in_place() {
            self.rec.save_cache();
        }
        (exit, self.rec.header, self.rec.state)
    }

    fn run_until_exit(&mut self) -> Result<RunnerExit, RunnerError> {
        loop {
            let until = match self.reconcile()? {
                Flow::Again => continue,
                Flow::Leave => break,
                Flow::Poll => Some(Instant::now()),
                Flow::Wait => None,
            };
            if self.receive(until)?.is_break() {
                self.stop_job();
                return Ok(RunnerExit::HungUp);
            }
        }
        Ok(match &self.rec.state.phase {
            Phase::Ended(outcome) => {
                let outcome = outcome.clone();
                self.rec.release_disk_reserve();
                RunnerExit::Ended(outcome)
            }
            Phase::Running { .. } => RunnerExit::AwaitingTurn,
            _ => RunnerExit::Paused,
        })
    }

    /// Cleans up after a runner that crashed, and records the events that it could not record.
    fn recover(&mut self) -> Result<(), RunnerError> {
        let was_cut_short = self.is_in_iteration();
        let survivors = self.kill_orphans();
        self.reactor.scope().mark_processes(&self.rec.header.id);
        self.remove_view();
        let (cost_usd, tokens) = if was_cut_short {
            self.recover_usage()
        } else {
            (None, None)
        };
        if self.rec.state.iteration > 0 && !was_cut_short {
            // The crash may have happened before markers were archived. Markers found after this
            // are new.
            self.archive_markers()?;
            if self.rec.state.claims.markers.contains(&Marker::Bus) {
                self.relay_messages()?;
            }
        }
        self.read_inbox()?;
        for request in self.reactor.take_requests() {
            self.rec.record_request(request, RequestSource::Host)?;
        }
        let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        self.rec.record(Event::Opened {
            pid,
            version,
            cost_usd,
            tokens,
            in_session: false,
            boot: os::boot::boot_id(),
        })?;
        if was_cut_short {
            // The agent may have written a marker after its runner crashed.
            self.look_for_markers()?;
            self.archive_markers()?;
        }
        // Record this fault after reading the inbox: a request to resume clears earlier faults.
        if !survivors.is_empty() {
            let detail =
                format!("processes of an earlier run are still alive after SIGKILL: {survivors:?}");
            self.rec.record_fault(Fault::Survivors, detail)?;
        }
        let _ = self.create_task_dir();
        self.watch_files();
        Ok(())
    }

    /// Kills the processes that an earlier runner left behind. Returns the pids of processes that
    /// survived.
    fn kill_orphans(&mut self) -> Vec<u32> {
        let state = &self.rec.state;
        if matches!(state.phase, Phase::NotStarted) {
            return Vec::new();
        }
        let (killed, survivors) = orphans::sweep(
            &self.rec.header.id,
            state,
            self.reactor.scope().exemptions(),
        );
        if killed > 0 {
            let count = format::process_count(killed);
            self.rec
                .warn(&format!("killed {count} left by an earlier run"));
        }
        if let Err(error) = View::recover(&self.rec.dir.view_scratch()) {
            self.rec
                .warn(&format!("cannot undo an earlier second look: {error}"));
        }
        survivors
    }

    // ---- input -----------------------------------------------------------------------------------

    /// Waits for input, at most until `until`, and records it. Breaks if the terminal was closed or
    /// the warden died.
    fn receive(&mut self, until: Option<Instant>) -> Result<ControlFlow<()>, RunnerError> {
        let until = [
            until,
            self.alarms.next(),
            self.rec.activity_due_at(),
            self.rec.lease_due_at(),
        ];
        let until = until.into_iter().flatten().min();
        let rec = &mut self.rec;
        let inputs = self.reactor.wait(until, &mut |act| rec.show(act));
        rec.flush_activity();
        self.rec.check_lease()?;
        self.rec.clock.beat();
        for input in inputs {
            if self.record_input(input)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.check_budget()?;
        if self.alarms.take_due() {
            self.rec.record(Event::Woke)?;
        }
        if self.alarms.is_tick_due() {
            let silent_for = self.reactor.silent_for();
            let next = self.rec.observer.tick(&self.rec.state, silent_for);
            self.alarms.tick_at = next.map(|next| Instant::now() + next);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Records what the running agent has spent if that uses up a budget of the loop.
    fn check_budget(&mut self) -> Result<(), RunnerError> {
        let state = &self.rec.state;
        if !state.has_running_budget() {
            return Ok(());
        }
        let Some(tally) = self.reactor.take_usage() else {
            return Ok(());
        };
        let model = state.agent().model.as_deref().unwrap_or_default();
        let cost_usd = tally.cost(&state.plan.prices, model);
        let tokens = tally.tokens();
        if state.exhausted_budget(cost_usd, tokens).is_none() {
            return Ok(());
        }
        self.rec.record(Event::Spent {
            iteration: state.iteration,
            cost_usd,
            tokens,
        })
    }

    fn record_input(&mut self, input: Input) -> Result<ControlFlow<()>, RunnerError> {
        let in_session = self.host.session().is_some();
        match input {
            Input::Signal(SignalEvent::HangUp) => return Ok(ControlFlow::Break(())),
            // A client signals the hook when it stops waiting. The loop continues at the next hook.
            Input::Signal(SignalEvent::Interrupt | SignalEvent::Terminate) if in_session => {
                return Ok(ControlFlow::Break(()));
            }
            Input::Signal(SignalEvent::Interrupt) => {
                self.rec
                    .record_request(Request::Stop, RequestSource::Sigint)?;
            }
            Input::Signal(SignalEvent::Terminate) => {
                self.rec
                    .record_request(Request::Pause, RequestSource::Sigterm)?;
            }
            Input::Signal(SignalEvent::ChildExited | SignalEvent::Resized) => {}
            // The next tick draws at the new size.
            Input::Resized => self.alarms.tick_at = None,
            Input::KeysAvailable(available) => {
                self.rec.observer.keys_available(available);
                self.alarms.tick_at = None;
            }
            Input::Keys(keys) => {
                self.rec.observer.keys(&keys, &self.rec.state);
                self.look_at_files()?;
            }
            Input::JobEnded(JobKey::Notify, result, _) => self.notify_ended(&result),
            Input::JobEnded(JobKey::Version, result, _) => self.version_ended(&result),
            Input::Requested(request) => {
                self.rec.record_request(request, RequestSource::Host)?;
            }
            Input::FilesChanged => self.look_at_files()?,
            Input::DonePattern(key) => self.record_notice(key, Notice::Pattern)?,
            Input::Inactive(key) => self.record_notice(key, Notice::Silence)?,
            Input::NeverReady(key) => self.record_notice(key, Notice::Unready)?,
            Input::Lingering(key) => self.record_notice(key, Notice::Lingering)?,
            Input::LineTooLong(bytes) => {
                self.rec
                    .record_fault(Fault::Usage, pty::line_too_long(bytes))?;
            }
            Input::LogFailed(error) => {
                let detail = format!("cannot write the output log: {error}");
                self.rec.record_fault(Fault::Disk, detail)?;
            }
            Input::JobEnded(JobKey::Agent(iteration), result, output) => {
                self.agent_ended(iteration, *result, output)?;
            }
            Input::JobEnded(JobKey::Check(iteration, check), result, _) => {
                self.check_ended(iteration, check, &result)?;
            }
            Input::JobEnded(JobKey::SetUp(iteration), result, _) => {
                self.setup_ended(iteration, &result)?;
            }
            Input::JobEnded(JobKey::Recheck(iteration, check), result, _) => {
                self.recheck_ended(iteration, check, &result)?;
            }
            Input::JobEnded(JobKey::Probe(check, probe), result, _) => {
                self.probe_ended(check, probe, &result)?;
            }
            Input::JobEnded(JobKey::ScmTask(iteration, task), result, _) => {
                self.scm_task_ended(iteration, task, &result)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Records a notice about the agent. Drops notices about other jobs.
    fn record_notice(&mut self, key: JobKey, notice: Notice) -> Result<(), RunnerError> {
        match key {
            JobKey::Agent(iteration) => self.rec.record_notice(iteration, notice, None),
            _ => Ok(()),
        }
    }

    /// Returns whether an agent is running according to the journal.
    fn is_in_iteration(&self) -> bool {
        matches!(
            self.rec.state.phase,
            Phase::Running { started: true, .. } | Phase::Killing { .. }
        )
    }

    /// Stops the running job and waits until all its processes are gone.
    fn stop_job(&mut self) {
        while self.reactor.running().is_some() {
            self.reactor.stop(false);
            let rec = &mut self.rec;
            self.reactor.wait(None, &mut |act| rec.keep(act));
        }
    }
}
