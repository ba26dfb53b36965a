//! Records events: writes each to the journal, applies it to the state, and passes it to the observer.

use super::clock::{Clock, wall_ms};
use super::lease::LeaseWatch;
use super::{Observer, RunnerError};
use crate::agent::redact::Redactor;
use crate::engine::event::{Fault, Notice, Request, RequestSource};
use crate::engine::{Act, Event, Now, State};
use crate::store::activity::ActivityWriter;
use crate::store::{
    Journal, JournalHeader, JournalLine, LockFileGuard, LoopDir, OpenedJournal, cache,
};
use std::time::{Duration, Instant};

/// The shortest interval between writes of the state cache.
const CACHE_INTERVAL: Duration = Duration::from_millis(100);

/// The journal and the state folded from it. Only [`Recorder::record`] changes the state.
pub(super) struct Recorder<'a> {
    pub(super) dir: LoopDir,
    pub(super) header: JournalHeader,
    pub(super) state: State,
    pub(super) clock: Clock,
    pub(super) redactor: Redactor,
    pub(super) observer: &'a mut dyn Observer,
    journal: Journal,
    lock_file: LockFileGuard,
    /// The lease; `None` if the loop does not belong to a fleet.
    lease: Option<LeaseWatch>,
    /// The activity file of the running iteration. `None` between iterations.
    activity: Option<ActivityWriter>,
    cached_at: Option<Instant>,
    disk_full: bool,
}

impl<'a> Recorder<'a> {
    pub(super) fn open(
        dir: LoopDir,
        opened: OpenedJournal,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, RunnerError> {
        let OpenedJournal {
            journal,
            header,
            state,
            warnings,
        } = opened;
        for warning in warnings {
            observer.warn(&warning);
        }
        let (clock, warning) = Clock::open(&dir, &state)?;
        if let Some(warning) = warning {
            observer.warn(&warning);
        }
        Ok(Self {
            lock_file: LockFileGuard::new(&dir),
            lease: LeaseWatch::open(&dir),
            dir,
            header,
            redactor: Redactor::for_plan(&state.plan),
            state,
            clock,
            observer,
            journal,
            activity: None,
            cached_at: None,
            disk_full: false,
        })
    }

    /// Records an event. The next call of [`Recorder::sync`] makes it durable.
    pub(super) fn record(&mut self, mut event: Event) -> Result<(), RunnerError> {
        let redactor = &self.redactor;
        if !redactor.is_empty() {
            event.edit_texts(&mut |text| redactor.redact_string(text));
        }
        let now = Now {
            wall_ms: wall_ms(),
            delta_ms: self.clock.now_ms().saturating_sub(self.state.clock_ms),
        };
        let line = JournalLine {
            at_ms: now.wall_ms,
            ms: now.delta_ms,
            event,
        };
        let appended = self.journal.append(&line);
        self.show_journal_warnings();
        if let Err(error) = appended {
            if self.disk_full || !error.is_disk_full() {
                return Err(error.into());
            }
            self.disk_full = true;
            self.journal.release_disk_reserve()?;
            self.journal.append(&line)?;
            self.apply(now, &line);
            let detail = format!(
                "no space left on the disk that holds {}",
                self.dir.path().display()
            );
            // A fault after the loop's ending would mean nothing.
            return match self.state.outcome() {
                Some(_) => Ok(()),
                None => self.record_fault(Fault::Disk, detail),
            };
        }
        self.apply(now, &line);
        if self
            .cached_at
            .is_none_or(|at| at.elapsed() > CACHE_INTERVAL)
        {
            self.save_cache();
            self.cached_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Frees the reserved disk space of a loop that has ended.
    pub(super) fn release_disk_reserve(&mut self) {
        if let Err(error) = self.journal.release_disk_reserve() {
            self.warn(&error.to_string());
        }
    }

    fn apply(&mut self, now: Now, line: &JournalLine) {
        self.state.step(now, &line.event);
        self.observer.event(line, &self.state);
    }

    pub(super) fn record_fault(
        &mut self,
        class: Fault,
        detail: impl Into<String>,
    ) -> Result<(), RunnerError> {
        let detail = detail.into();
        self.record(Event::Faulted { class, detail })
    }

    pub(super) fn record_notice(
        &mut self,
        iteration: u32,
        notice: Notice,
        text: Option<String>,
    ) -> Result<(), RunnerError> {
        self.record(Event::Noticed {
            iteration,
            notice,
            text,
        })
    }

    pub(super) fn record_request(
        &mut self,
        request: Request,
        by: RequestSource,
    ) -> Result<(), RunnerError> {
        self.record(Event::Asked {
            request,
            by,
            inbox: None,
        })
    }

    /// Makes everything recorded so far durable, in the fleet too if the loop belongs to one.
    pub(super) fn sync(&mut self) -> Result<(), RunnerError> {
        self.journal.sync()?;
        let len = self.journal.len();
        match &mut self.lease {
            Some(lease) => lease.wait_until_published(len),
            None => Ok(()),
        }
    }

    /// Fails if another machine may be running the loop.
    pub(super) fn check_lease(&mut self) -> Result<(), RunnerError> {
        self.lease.as_mut().map_or(Ok(()), LeaseWatch::check)
    }

    /// Returns when the lease must be checked again; `None` if there is none.
    pub(super) fn lease_due_at(&self) -> Option<Instant> {
        self.lease.as_ref().map(LeaseWatch::next_check)
    }

    /// Returns whether a write has failed because the disk is full. Such a failure ends the loop.
    pub(super) fn is_disk_full(&self) -> bool {
        self.disk_full
    }

    /// Returns whether the loop's directory is still where it was when the loop was opened.
    pub(super) fn is_in_place(&self) -> bool {
        self.journal.is_in_place()
    }

    /// Undoes what other processes did to the journal and the lock file, with a warning. Fails if
    /// that is not possible. This takes a few system calls, so call it before every step.
    pub(super) fn check_files(&mut self) -> Result<(), RunnerError> {
        let checked = self.journal.check_length();
        self.show_journal_warnings();
        checked?;
        if self.is_in_place()
            && let Some(warning) = self.lock_file.restore()?
        {
            self.observer.warn(&warning);
        }
        Ok(())
    }

    fn show_journal_warnings(&mut self) {
        for warning in self.journal.take_warnings() {
            self.observer.warn(&warning);
        }
    }

    /// Saves the state for readers. Errors are ignored, because readers can fold the journal
    /// instead.
    pub(super) fn save_cache(&self) {
        let _ = cache::save(&self.dir, self.journal.len(), &self.header, &self.state);
    }

    /// Passes an act of the agent to the observer, and adds it to the iteration's activity.
    pub(super) fn show(&mut self, act: &Act<'_>) {
        self.observer.act(act);
        self.keep(act);
    }

    /// Adds an act to the iteration's activity.
    pub(super) fn keep(&mut self, act: &Act<'_>) {
        if let Some(activity) = &mut self.activity {
            activity.push(act);
        }
    }

    /// Opens the activity file of an iteration. The iteration's directory must exist.
    pub(super) fn begin_activity(&mut self, iteration: u32) {
        let path = self.dir.activity(iteration);
        self.activity = Some(ActivityWriter::create(&path, iteration));
    }

    /// Writes pending acts if they are due.
    pub(super) fn flush_activity(&mut self) {
        if let Some(activity) = &mut self.activity {
            activity.flush_if_due();
        }
    }

    /// Returns the time by which [`Recorder::flush_activity`] must be called, or `None` if no act
    /// is pending.
    pub(super) fn activity_due_at(&self) -> Option<Instant> {
        self.activity.as_ref()?.next_flush()
    }

    /// Writes the remaining acts and closes the activity file.
    pub(super) fn end_activity(&mut self) {
        self.activity = None;
    }

    pub(super) fn warn(&mut self, text: &str) {
        self.observer.warn(text);
    }

    /// Restores redacted secrets in a text from the plan, because commands need the real values.
    pub(super) fn restore_secrets(&self, text: &str) -> String {
        self.redactor.restore(text, &self.state.plan.redacted)
    }
}
