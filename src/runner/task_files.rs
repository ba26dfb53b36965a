//! Reads files that other processes write for the runner, such as the inbox and markers, and checks
//! the workspace.

use super::{Runner, RunnerError};
use crate::engine::Marker;
use crate::engine::event::{Fault, Notice};
use crate::engine::format;
use crate::git::{exclude, worktree};
use crate::os::disk;
use crate::store::derived_files::PROGRESS_FILE;
use crate::store::{event_from_message, inbox};
use std::io;
use std::time::{Duration, Instant};

/// A result whose error is a fault and its description.
pub(super) type FaultResult<T> = Result<T, (Fault, String)>;

/// The time for which a disk that had enough free space is not checked again.
const DISK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Runner<'_> {
    /// Watches the inbox, the task directory and the directory of the done file.
    pub(super) fn watch_files(&mut self) {
        self.reactor.reset_watches();
        self.reactor.ignore_file(PROGRESS_FILE);
        self.reactor.watch(&self.rec.dir.inbox());
        self.reactor.watch(self.task_dir.path());
        let plan = &self.rec.state.plan;
        if let Some(parent) = plan.proof.file().and_then(|file| file.parent()) {
            self.reactor.watch(&plan.workspace.join(parent));
        }
    }

    /// Reads every watched file that may have changed.
    pub(super) fn look_at_files(&mut self) -> Result<(), RunnerError> {
        self.watch_files();
        self.read_inbox()?;
        self.look_for_markers()
    }

    pub(super) fn read_inbox(&mut self) -> Result<(), RunnerError> {
        // A directory in place of the loop's own has an inbox for another runner.
        if !self.rec.is_in_place() {
            return Ok(());
        }
        let (dir, offset) = (&self.rec.dir, self.rec.state.inbox_offset);
        let read = inbox::restore(dir, offset)
            .and_then(|warning| Ok((warning, inbox::read(dir, offset)?)));
        let (warning, messages) = match read {
            // It was moved just now, which is reported before the next step.
            Err(_) if !self.rec.is_in_place() => return Ok(()),
            read => read?,
        };
        if let Some(warning) = warning {
            self.rec.warn(&warning);
        }
        for (message, offset) in messages {
            if let Some(event) = event_from_message(message, offset) {
                self.rec.record(event)?;
            }
        }
        Ok(())
    }

    /// Posts the agent's messages, and records its new markers.
    pub(super) fn look_for_markers(&mut self) -> Result<(), RunnerError> {
        self.relay_messages()?;
        let signals = &self.rec.state.plan.proof.signals;
        let found = self.task_dir.scan(signals, &self.rec.redactor);
        if let Some(detail) = found.invalid_marker {
            return self.rec.record_fault(Fault::Marker, detail);
        }
        let iteration = self.rec.state.iteration;
        let leaves_something =
            found.cost_usd.is_some() || found.markers.iter().any(|marker| *marker != Marker::File);
        for marker in found.markers {
            if !self.rec.state.claims.markers.contains(&marker) {
                let text = found.texts.get(&marker).cloned();
                self.rec
                    .record_notice(iteration, Notice::Marker(marker), text)?;
            }
        }
        // A marker written between iterations is judged at once. Archive it, so that the next
        // iteration does not count it again.
        if leaves_something && !self.is_in_iteration() {
            self.archive_markers()?;
        }
        Ok(())
    }

    /// Moves judged markers into the latest iteration's directory, so that no marker counts twice.
    pub(super) fn archive_markers(&mut self) -> Result<(), RunnerError> {
        let dir = self.rec.dir.iteration_dir(self.rec.state.iteration);
        let judged = &self.rec.state.claims.markers;
        match self.task_dir.archive(judged, &dir, &self.rec.redactor) {
            Ok(()) => Ok(()),
            Err(detail) => self.rec.record_fault(Fault::Marker, detail),
        }
    }

    /// Checks that the loop's directory and the workspace still exist.
    pub(super) fn check_places(&self) -> FaultResult<()> {
        let plan = &self.rec.state.plan;
        if !self.rec.is_in_place() {
            return Err((Fault::Disk, self.missing_dir()));
        }
        if let Some(own) = plan.worktree.as_ref().filter(|own| !worktree::exists(own)) {
            return Err((Fault::Workspace, worktree::missing_message(own)));
        }
        if !plan.workspace.is_dir() {
            let detail = format!(
                "the workspace no longer exists: {}",
                plan.workspace.display()
            );
            return Err((Fault::Workspace, detail));
        }
        Ok(())
    }

    /// Describes why other processes do not find the loop's journal where this runner opened it.
    pub(super) fn missing_dir(&self) -> String {
        let dir = self.rec.dir.path();
        // A directory without a journal is being deleted at this moment.
        let what = if self.rec.dir.journal().exists() {
            "the loop's directory was replaced by another one"
        } else {
            "the loop's directory was deleted or moved"
        };
        format!("{what}: {}", dir.display())
    }

    /// Checks that an iteration can start in the workspace, and creates the task directory.
    pub(super) fn check_workspace(&mut self) -> FaultResult<()> {
        self.check_places()?;
        // An agent that cannot write costs as much as any other, and achieves nothing.
        let workspace = &self.rec.state.plan.workspace;
        if let Err(error) = disk::check_writable(workspace) {
            let dir = workspace.display();
            let detail = format!("cannot write to the workspace: {dir}: {error}");
            return Err((Fault::Workspace, detail));
        }
        let created = self.create_task_dir();
        let writable = created.and_then(|()| disk::check_writable(self.task_dir.path()));
        if let Err(error) = writable {
            let dir = self.task_dir.path().display();
            let detail = format!("cannot write to the workspace: {dir}: {error}");
            return Err((Fault::Workspace, detail));
        }
        self.remove_left_locks();
        self.reactor.watch(self.task_dir.path());
        Ok(())
    }

    /// Removes locks that killed git processes left in the loop's own worktree, because the agent's
    /// and ralph's own git commands would fail. No process of this loop is running.
    pub(super) fn remove_left_locks(&mut self) {
        let own = self.rec.state.plan.worktree.as_ref();
        for lock in own.map(worktree::remove_own_locks).unwrap_or_default() {
            let lock = lock.display();
            self.rec.warn(&format!(
                "removed {lock}, which a git process that was killed had left"
            ));
        }
    }

    /// Creates the task directory, and makes git ignore it.
    pub(super) fn create_task_dir(&self) -> io::Result<()> {
        self.task_dir.ensure()?;
        if !self.task_dir.is_ignored() {
            // A precaution: without it, git shows ralph's files, but the loop works.
            let _ = exclude::add(&self.rec.state.plan.workspace);
        }
        Ok(())
    }

    /// Checks that the disks of the loop's directory and of the workspace have enough free space.
    pub(super) fn check_disk(&mut self) -> FaultResult<()> {
        let is_recent = |at: Instant| at.elapsed() < DISK_CHECK_INTERVAL;
        if self.disk_checked_at.is_some_and(is_recent) {
            return Ok(());
        }
        let plan = &self.rec.state.plan;
        for dir in [self.rec.dir.path(), &plan.workspace] {
            let Ok(disk) = rustix::fs::statvfs(dir) else {
                continue;
            };
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            if free < plan.min_free {
                let (free, needed) = (format::bytes(free), format::bytes(plan.min_free));
                let dir = dir.display();
                let detail =
                    format!("only {free} free on the disk that holds {dir}; ralph needs {needed}");
                return Err((Fault::Disk, detail));
            }
        }
        self.disk_checked_at = Some(Instant::now());
        Ok(())
    }
}
