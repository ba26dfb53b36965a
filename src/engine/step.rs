//! Applies one event to a loop's state.

use super::event::{
    AgentReport, CheckReport, Event, Fault, Marker, Notice, Now, Request, RequestSource,
};
use super::graded::GradedState;
use super::iteration::IterationEnd;
use super::limits::Limit;
use super::outcome::Outcome;
use super::state::{Phase, ProcessIdentity, State};
use super::usage::Tokens;

impl State {
    /// Applies one event.
    ///
    /// An event that does not fit the phase, or that names another iteration, is stale. It updates
    /// the clocks and changes nothing else.
    #[expect(clippy::too_many_lines, reason = "one arm for each event")]
    pub(crate) fn step(&mut self, now: Now, event: &Event) {
        self.pass_time(now);
        match event {
            Event::Opened {
                cost_usd,
                tokens,
                in_session,
                boot,
                ..
            } => {
                self.boot.clone_from(boot);
                if !*in_session {
                    // Opening the loop from anything but a hook detaches it from the session
                    // permanently.
                    self.session = None;
                }
                self.opened(*cost_usd, *tokens);
            }
            Event::Asked { request, by, inbox } => {
                self.advance_inbox(*inbox);
                self.asked(*request, *by);
            }
            Event::Answered { text, inbox } => {
                self.advance_inbox(*inbox);
                self.answers.push(text.clone());
            }
            Event::Changed { limit, inbox } => {
                self.advance_inbox(*inbox);
                self.change_limit(limit);
            }
            Event::Checked {
                iteration,
                check,
                report,
                tree,
                written,
            } => self.checked(*iteration, *check, report, tree.as_ref(), written),
            Event::Probed { .. } | Event::Labeled { .. } => self.apply_label_event(event),
            Event::Surveyed {
                iteration,
                touched,
                weaknesses,
                failure,
            } => self.surveyed(*iteration, touched, weaknesses, failure.as_ref()),
            Event::Rechecked {
                iteration,
                check,
                report,
            } => self.rechecked(*iteration, *check, report),
            Event::SetUp { iteration, report } => self.set_up(*iteration, report),
            Event::Accepted { globs, inbox } => {
                self.advance_inbox(*inbox);
                self.accepted(globs);
            }
            Event::Checkpointed { .. } => self.checkpointed(event),
            Event::Rewound { to, inbox } => {
                self.advance_inbox(*inbox);
                self.rewound(to);
            }
            Event::Moved { place } => self.moved(place),
            Event::Committed {
                iteration,
                task,
                report,
            } => self.committed(*iteration, *task, report),
            Event::Started { .. } => self.started(event),
            Event::Hurried { inbox } => {
                self.advance_inbox(*inbox);
                self.skip_rest();
            }
            Event::Notified { stage, rest } => self.rest_notified(*stage, rest),
            Event::Spawned {
                iteration,
                pid,
                start_time,
            } if *iteration == self.iteration => {
                self.process = Some(ProcessIdentity {
                    pid: *pid,
                    start_time: *start_time,
                });
            }
            Event::Noticed {
                iteration,
                notice,
                text,
            } => self.noticed(*iteration, *notice, text.as_ref()),
            Event::Spent {
                iteration,
                cost_usd,
                tokens,
            } => self.spent(*iteration, *cost_usd, *tokens),
            Event::Ended { iteration, report } => self.agent_ended(*iteration, report),
            Event::TurnFailed { iteration, message } => self.turn_failed(*iteration, message),
            Event::Drained {
                iteration,
                waited,
                stopped,
            } => {
                self.drained(*iteration, !waited.is_empty() || !stopped.is_empty());
            }
            Event::Faulted { class, detail } => self.faulted(*class, detail),
            Event::Woke => self.woke(),
            Event::Finished { review, end, .. } => {
                self.finished = matches!(self.phase, Phase::Ended(_));
                (self.review, self.end) = (review.clone(), end.clone());
                self.notified_rest = None;
            }
            Event::Spawned { .. } | Event::Unknown => {}
        }
        // Decide again if the next iteration has not started: a limit or a request may now prevent
        // it.
        if matches!(
            self.phase,
            Phase::Resting { .. } | Phase::Running { started: false, .. }
        ) {
            self.proceed();
        }
    }

    /// Advances the clocks to the time of an event.
    pub(crate) fn pass_time(&mut self, now: Now) {
        if self.is_probing() {
            self.waited_ms = self.waited_ms.saturating_add(now.delta_ms);
        }
        self.clock_ms = self.clock_ms.saturating_add(now.delta_ms);
        let expected_ms = self.wall_ms.saturating_add_unsigned(now.delta_ms);
        self.shorten_rests(expected_ms.saturating_sub(now.wall_ms));
        self.wall_ms = now.wall_ms;
        let is_idle = matches!(
            self.phase,
            Phase::NotStarted
                | Phase::Paused
                | Phase::Ended(_)
                | Phase::Resting {
                    wall_ms: Some(_),
                    ..
                }
        );
        if !is_idle {
            self.active_ms = self.active_ms.saturating_add(now.delta_ms);
        }
    }

    fn advance_inbox(&mut self, offset: Option<u64>) {
        self.inbox_offset = self.inbox_offset.max(offset.unwrap_or(0));
    }

    /// Continues the loop in a new runner. Processes of an earlier runner have already been killed,
    /// so an iteration that was running is recorded as interrupted. `cost_usd` and `tokens` are
    /// that iteration's usage; `None` if unknown.
    fn opened(&mut self, cost_usd: Option<f64>, tokens: Option<Tokens>) {
        match self.phase {
            Phase::NotStarted if self.plan.proof.preflight && self.request == Request::Go => {
                self.begin_checks();
            }
            Phase::NotStarted if self.request == Request::Go => self.begin_without_preflight(),
            Phase::NotStarted => self.proceed(),
            Phase::Checking if self.awaits_first_checkpoint() || self.fault.is_some() => {}
            Phase::Checking if self.is_labeling() => self.stop_probing(),
            // The client runs a session's agent, which is therefore still running.
            Phase::Running { started: true, .. } | Phase::Killing { .. }
                if self.is_in_session() => {}
            Phase::Running { started: true, .. } | Phase::Killing { .. } => {
                let since_ms = match self.phase {
                    Phase::Running { since_ms, .. } => since_ms,
                    _ => self.clock_ms,
                };
                let report = AgentReport {
                    ms: self.clock_ms.saturating_sub(since_ms),
                    cost_usd,
                    tokens,
                    ..AgentReport::default()
                };
                self.record_iteration(IterationEnd::Interrupted, &report);
                self.check_or_proceed();
            }
            // An interrupted check proves nothing, and files may have changed since the others ran.
            // SCM tasks must not commit files that no check has seen.
            Phase::Checking | Phase::Looking | Phase::Committing
                if !self.request.is_immediate() =>
            {
                self.begin_checks();
            }
            Phase::Draining { .. } => self.drain_again(),
            _ => {}
        }
    }

    fn asked(&mut self, request: Request, by: RequestSource) {
        // An immediate request or a signal after an immediate request skips all remaining grace
        // periods.
        let pressed = self.request.is_immediate() && (request.is_immediate() || by.is_signal());
        let second_signal = by.is_signal() && self.requested_by.is_signal();
        let request = escalate(self.request, request, second_signal);
        if by.is_signal() || request != self.request {
            self.requested_by = by;
        }
        match request {
            Request::Go => self.paused_by = None,
            Request::Pause | Request::PauseNow
                if self.paused_by.is_none_or(RequestSource::is_signal) =>
            {
                self.paused_by = Some(by);
            }
            _ => {}
        }
        self.request = request;
        // The loop's worktree is still committed, unless the user asks again.
        let commits_worktree = self.next_scm_task() == Some(self.worktree_task()) && !pressed;
        let awaits_checkpoint = self.awaits_checkpoint();
        match &mut self.phase {
            Phase::Running { started: true, .. } if request.is_immediate() => {
                self.kill(IterationEnd::Stopped);
            }
            Phase::Killing { hard, .. } => *hard |= pressed,
            Phase::Checking if awaits_checkpoint && !pressed => {}
            Phase::Checking | Phase::Looking if request.is_immediate() => {
                self.run_scm_tasks_or_proceed();
            }
            Phase::Committing if request.is_immediate() && !commits_worktree => self.proceed(),
            Phase::Draining { .. } => self.hurry_drain(),
            Phase::Paused | Phase::Ended(_) if request == Request::Go => self.reopen(),
            Phase::Paused => self.proceed(),
            _ => {}
        }
    }

    /// Resumes the loop. The cause of its ending is cleared, but limits keep their used amounts. A
    /// loop that is done stays ended.
    pub(super) fn reopen(&mut self) {
        match self.phase {
            Phase::Ended(Outcome::Done { .. }) => return,
            Phase::Ended(Outcome::Limit {
                limit: Limit::Failures,
                ..
            }) => {
                self.consecutive_failures = 0;
                self.scm.failures = 0;
            }
            _ => {}
        }
        let looks_again =
            matches!(self.phase, Phase::Ended(Outcome::Disputed { .. })) && self.reopen_dispute();
        let is_refused = self.has_refused_checks();
        self.fault = None;
        self.progress.stalls = 0;
        self.peeks = 0;
        self.clear_exclusions();
        let marker = self.claims.marker_texts.remove(&Marker::Blocked);
        let asked = self.claims.signals.blocked.take().or(marker);
        self.question = asked.or(self.question.take());
        self.claims.exit_waiting = None;
        self.claims
            .markers
            .retain(|marker| !matches!(marker, Marker::Blocked | Marker::Wait | Marker::Bus));
        self.rest_until_ms = 0;
        self.waited_ms = 0;
        self.finished = false;
        self.drained = false;
        // A person may have fixed the cause of a failed SCM task, so the task runs again after the
        // checks.
        self.scm.reports.pop_if(|last| !last.is_success());
        self.scm
            .worktree_commit
            .take_if(|commit| !commit.is_success());
        let is_due = self.iteration > 0 || self.plan.proof.preflight;
        let is_unchecked = !self.is_checked() || self.is_rewound() || is_refused;
        if is_due && (looks_again || is_unchecked || self.next_scm_task().is_some()) {
            self.begin_checks();
        } else {
            self.proceed();
        }
    }

    pub(super) fn begin_checks(&mut self) {
        self.discard_verdict();
        self.checks = vec![None; self.plan.proof.checks.len()];
        self.look.discard();
        self.graded = GradedState::default();
        self.discard_labels();
        self.begin_checkpoint();
        self.phase = Phase::Checking;
        if self.checks.is_empty() && self.due_checkpoint().is_none() {
            self.run_scm_tasks_or_proceed();
        }
    }

    fn checked(
        &mut self,
        iteration: u32,
        check: usize,
        report: &CheckReport,
        tree: Option<&String>,
        written: &[String],
    ) {
        let expected = self.next_check();
        if self.phase != Phase::Checking || iteration != self.iteration || expected != Some(check) {
            return;
        }
        if self.due_checkpoint().is_some() || self.due_seal().is_some() {
            return;
        }
        self.checks[check] = Some(report.clone());
        if let Some(last) = self
            .recent
            .back_mut()
            .filter(|last| last.number == iteration)
        {
            last.checks.clone_from(&self.checks);
        }
        if self.is_checked() {
            if iteration == 0 && self.plan.proof.preflight {
                self.red_at_start = Some(!self.all_green());
                self.count_tests_at_start();
            }
            self.measured(tree);
            if self.grade_written_files(written) {
                return;
            }
            self.judge_progress();
            self.judge_best();
            self.claim_needed = self.is_green_without_change();
            if !self.is_labeling() {
                self.look_or_continue();
            }
        }
    }

    fn noticed(&mut self, iteration: u32, notice: Notice, text: Option<&String>) {
        if iteration != self.iteration {
            return;
        }
        if let Notice::Marker(marker) = notice {
            let texts = text.map(|text| (marker, text.clone()));
            self.claims.marker_texts.extend(texts);
            if !self.claims.markers.contains(&marker) {
                self.claims.markers.push(marker);
            }
        }
        match (&mut self.phase, notice) {
            (Phase::Running { started: true, .. }, Notice::Pattern) => {
                self.claims.signals.matched = true;
                self.kill(IterationEnd::PatternMatched);
            }
            (Phase::Running { started: true, .. }, Notice::Silence) => {
                self.kill(IterationEnd::Inactive);
            }
            (Phase::Running { started: true, .. }, Notice::Unready) => {
                self.kill(IterationEnd::Unready);
            }
            (Phase::Running { started: true, .. }, Notice::Lingering) => {
                self.kill(IterationEnd::Lingered);
            }
            // An earlier iteration may have left the done file, so the file does not end this one.
            (
                Phase::Running {
                    started: true,
                    stop_at_ms,
                    ..
                },
                Notice::Marker(marker),
            ) if marker != Marker::File => {
                stop_at_ms.get_or_insert(self.clock_ms.saturating_add(self.plan.grace.marker_ms));
            }
            (Phase::Resting { .. } | Phase::Running { started: false, .. }, Notice::Marker(_)) => {
                self.judge_claim();
            }
            _ => {}
        }
    }

    /// Judges a claim that was made between iterations, once all checks have run.
    fn judge_claim(&mut self) {
        if self.is_checked() {
            self.proceed();
        } else {
            self.begin_checks();
        }
    }

    fn faulted(&mut self, class: Fault, detail: &str) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        self.fault = Some((class, detail.to_owned()));
        match self.phase {
            Phase::Running { started: true, .. } if self.process.is_some() => {
                self.kill(IterationEnd::Faulted);
            }
            // The journal contains the iteration's start, but the agent could not be started.
            Phase::Running { started: true, .. } => {
                let report = AgentReport {
                    cost_usd: Some(0.0),
                    ..AgentReport::default()
                };
                self.record_iteration(IterationEnd::Faulted, &report);
                self.proceed();
            }
            Phase::Killing { .. } => {}
            _ => self.proceed(),
        }
    }

    fn woke(&mut self) {
        let due = self
            .deadlines()
            .filter(|(at, _)| *at <= self.clock_ms)
            .min_by_key(|(at, _)| *at);
        if let Some((_, why)) = due {
            self.kill(why);
        }
        if self.job_stops_at().is_some_and(|at| at <= self.clock_ms) {
            match self.phase {
                Phase::Checking | Phase::Looking => self.run_scm_tasks_or_proceed(),
                _ => self.proceed(),
            }
        }
        if let Phase::Draining {
            until_ms: Some(at),
            stop: false,
        } = self.phase
            && at <= self.clock_ms
        {
            self.drain_timed_out(at);
        }
    }

    pub(super) fn kill(&mut self, why: IterationEnd) {
        self.phase = Phase::Killing { why, hard: false };
    }
}

/// Combines the request in force with a new one. Stop outweighs pause, immediate outweighs
/// graceful, and a second signal is immediate. Only `Go` revokes a request.
fn escalate(before: Request, asked: Request, second_signal: bool) -> Request {
    if before == Request::Go || asked == Request::Go {
        return asked;
    }
    let stop = before.is_stop() || asked.is_stop();
    let now = second_signal || before.is_immediate() || asked.is_immediate();
    match (stop, now) {
        (true, true) => Request::StopNow,
        (true, false) => Request::Stop,
        (false, true) => Request::PauseNow,
        (false, false) => Request::Pause,
    }
}
