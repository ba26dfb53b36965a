//! How one event changes where a loop stands.

use super::act::COST_MAX;
use super::event::{Change, CheckReport, Door, Event, Fault, Marker, Notice, Now, Report, Wish};
use super::fallback::doubled;
use super::outcome::{Limit, Outcome};
use super::state::{Claims, How, Iteration, Phase, REMEMBERED, State};
use super::usage::{Session, Tokens};

/// As many sessions are remembered: one for each of a few agents.
const SESSIONS: usize = 4;

impl State {
    /// Takes one event into account.
    pub fn step(&mut self, now: Now, event: &Event) {
        self.pass_time(now);
        match event {
            Event::Opened {
                cost_usd,
                tokens,
                inside,
                ..
            } => {
                if !*inside {
                    // Whoever goes on outside of it has left the session behind.
                    self.stay = None;
                }
                self.opened(*cost_usd, *tokens);
            }
            Event::Asked { wish, by, inbox } => {
                self.read_inbox(*inbox);
                self.asked(*wish, *by);
            }
            Event::Answered { text, inbox } => {
                self.read_inbox(*inbox);
                self.answers.push(text.clone());
            }
            Event::Changed { limit, inbox } => {
                self.read_inbox(*inbox);
                self.changed(limit);
            }
            Event::Checked {
                iteration,
                check,
                report,
            } => self.checked(*iteration, *check, report),
            Event::Committed {
                iteration,
                task,
                report,
            } => self.committed(*iteration, *task, report),
            Event::Started { iteration, .. } => self.started(*iteration),
            Event::Hurried { inbox } => {
                self.read_inbox(*inbox);
                self.hurry();
            }
            Event::Spawned {
                iteration,
                pid,
                start_time,
            } if *iteration == self.iteration => {
                self.process = Some((*pid, *start_time));
            }
            Event::Noticed {
                iteration,
                notice,
                words,
            } => self.noticed(*iteration, *notice, words.as_ref()),
            Event::Ended { iteration, report } => self.agent_ended(*iteration, report),
            Event::Stumbled { iteration, words } => self.stumbled(*iteration, words),
            Event::Drained {
                iteration,
                waited,
                stopped,
            } => {
                self.drained(*iteration, !waited.is_empty() || !stopped.is_empty());
            }
            Event::Faulted { class, detail } => self.faulted(*class, detail),
            Event::Woke => self.woke(),
            Event::Finished { .. } => self.finished = matches!(self.phase, Phase::Ended(_)),
            Event::Spawned { .. } | Event::Unknown => {}
        }
        // What has not begun yet is decided anew: a limit may have been reached, or a wish have come.
        if matches!(
            self.phase,
            Phase::Resting { .. } | Phase::Running { started: false, .. }
        ) {
            self.proceed();
        }
    }

    fn pass_time(&mut self, now: Now) {
        self.clock_ms = self.clock_ms.saturating_add(now.delta_ms);
        self.wall_ms = now.wall_ms;
        let waits = matches!(
            self.phase,
            Phase::Resting {
                wall_ms: Some(_),
                ..
            }
        );
        if !waits && !matches!(self.phase, Phase::Waiting | Phase::Paused | Phase::Ended(_)) {
            self.active_ms = self.active_ms.saturating_add(now.delta_ms);
        }
    }

    fn read_inbox(&mut self, offset: Option<u64>) {
        self.inbox_offset = self.inbox_offset.max(offset.unwrap_or(0));
    }

    fn opened(&mut self, cost_usd: Option<f64>, tokens: Option<Tokens>) {
        match self.phase {
            Phase::Waiting if self.plan.proof.preflight && self.wish == Wish::Go => {
                self.begin_checks()
            }
            Phase::Waiting => self.proceed(),
            // A session's agent is its client's, and goes on.
            Phase::Running { started: true, .. } | Phase::Killing { .. } if self.is_inside() => {}
            // Nothing is adopted: what an earlier runner had started was swept before this event.
            Phase::Running { started: true, .. } | Phase::Killing { .. } => {
                self.remember(
                    How::Interrupted,
                    &Report {
                        cost_usd,
                        tokens,
                        ..Report::default()
                    },
                );
                self.judge_iteration();
            }
            // A check that was cut short says nothing, and the others may have seen other files. Nor is anything
            // committed that no check has seen.
            Phase::Checking | Phase::Committing if !self.wish.is_now() => self.begin_checks(),
            Phase::Draining { .. } => self.drain_again(),
            _ => {}
        }
    }

    fn asked(&mut self, wish: Wish, by: Door) {
        let by_signal = by.is_signal();
        // A verb that asks for less than there is already does not press.
        let pressed = self.wish.is_now() && (wish.is_now() || by_signal);
        let wish = escalate(self.wish, wish, by_signal && self.wished_by.is_signal());
        if by_signal || wish != self.wish {
            self.wished_by = by;
        }
        self.wish = wish;
        // A worktree of its own is committed first; whoever presses once more does not wait for that either.
        let saves = self.task_due() == Some(self.own_task()) && !pressed;
        match &mut self.phase {
            Phase::Running { started: true, .. } if wish.is_now() => self.kill(How::Stopped),
            // Asked once more while the agent is being stopped: no more grace.
            Phase::Killing { hard, .. } => *hard |= pressed,
            Phase::Checking if wish.is_now() => self.keep_or_proceed(),
            Phase::Committing if wish.is_now() && !saves => self.proceed(),
            Phase::Draining { .. } => self.hurry_drain(),
            Phase::Paused | Phase::Ended(_) if wish == Wish::Go => self.reopen(),
            Phase::Paused => self.proceed(),
            _ => {}
        }
    }

    /// A person resumes: what had ended the loop is forgiven, what is used up is not.
    pub(super) fn reopen(&mut self) {
        match self.phase {
            Phase::Ended(Outcome::Done { .. }) => return,
            Phase::Ended(Outcome::Limit {
                limit: Limit::Failures,
                ..
            }) => {
                self.consecutive_failures = 0;
                self.keeping.failures = 0;
            }
            _ => {}
        }
        self.fault = None;
        self.welcome_back();
        self.question = self.claims.said.blocked.take().or(self.question.take());
        self.claims.exit_waiting = None;
        self.claims
            .markers
            .retain(|marker| !matches!(marker, Marker::Blocked | Marker::Wait | Marker::Bus));
        self.rest_until_ms = 0;
        self.finished = false;
        self.drained = false;
        // A person may have mended what a task complained of: it is tried again, on files that checks have seen.
        self.keeping.reports.pop_if(|last| !last.is_good());
        self.keeping.saved.take_if(|saved| !saved.is_good());
        let due = self.iteration > 0 || self.plan.proof.preflight;
        if due && (self.checks.iter().any(Option::is_none) || self.task_due().is_some()) {
            self.begin_checks();
        } else {
            self.proceed();
        }
    }

    fn changed(&mut self, change: &Change) {
        let limits = &mut self.plan.limits;
        match change {
            Change::MaxIterations(value) => limits.iterations = *value,
            Change::MaxCost(value) => limits.cost_usd = *value,
            Change::MaxTokens(value) => limits.tokens = *value,
            Change::MaxTime(value) => limits.time_ms = *value,
            Change::MaxFailures(value) => limits.failures = *value,
        }
    }

    pub(super) fn begin_checks(&mut self) {
        self.checks = vec![None; self.plan.proof.checks.len()];
        if self.checks.is_empty() {
            self.keep_or_proceed();
        } else {
            self.phase = Phase::Checking;
        }
    }

    fn checked(&mut self, iteration: u32, check: usize, report: &CheckReport) {
        let expected = self.checks.iter().position(Option::is_none);
        if self.phase != Phase::Checking || iteration != self.iteration || expected != Some(check) {
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
        if check + 1 == self.checks.len() {
            if iteration == 0 && self.plan.proof.preflight {
                self.red_at_start = Some(!self.all_green());
            }
            self.keep_or_proceed();
        }
    }

    fn started(&mut self, iteration: u32) {
        if matches!(self.phase, Phase::Running { started: false, .. })
            && iteration == self.iteration + 1
        {
            self.iteration = iteration;
            self.phase = Phase::Running {
                started: true,
                since_ms: self.clock_ms,
                stop_at_ms: None,
            };
            self.counted += 1;
            self.iteration_wall_ms = Some(self.wall_ms);
            self.checks = vec![None; self.plan.proof.checks.len()];
            self.keeping.begin();
            self.drained = false;
            self.claims = Claims::default();
            self.answers_told = self.answers.len();
            self.process = None;
        }
    }

    fn noticed(&mut self, iteration: u32, notice: Notice, words: Option<&String>) {
        if iteration != self.iteration {
            return;
        }
        if let Some(words) = words {
            self.claims.said.blocked = Some(words.clone());
        }
        if let Notice::Marker(marker) = notice
            && !self.claims.markers.contains(&marker)
        {
            self.claims.markers.push(marker);
        }
        match (&mut self.phase, notice) {
            (Phase::Running { started: true, .. }, Notice::Pattern) => {
                self.claims.said.matched = true;
                self.kill(How::Matched);
            }
            (Phase::Running { started: true, .. }, Notice::Silence) => self.kill(How::Inactive),
            (Phase::Running { started: true, .. }, Notice::Unready) => self.kill(How::Unready),
            (Phase::Running { started: true, .. }, Notice::Lingering) => self.kill(How::Lingered),
            // A file that was asked for may be there from an earlier iteration: that is no sign of an end.
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

    fn agent_ended(&mut self, iteration: u32, report: &Report) {
        let how = match self.phase {
            _ if iteration != self.iteration => return,
            Phase::Running { started: true, .. } => How::Exited,
            Phase::Killing { why, .. } => why,
            _ => return,
        };
        self.turn_ended(report.steps);
        let matched = self.claims.said.matched;
        self.claims.said = report.said.clone();
        self.claims.said.matched |= matched;
        if report.was_kept_from_all() {
            // Whoever was allowed nothing has done nothing: that all is done is then no claim of work.
            (self.claims.said.promised, self.claims.said.matched) = (false, false);
        }
        self.claims.markers.extend(&report.markers);
        self.claims.markers.sort_unstable();
        self.claims.markers.dedup();
        let waiting = self.agent().exit_waiting;
        if how == How::Exited && waiting.is_some() && report.exit.code == waiting {
            self.claims.exit_waiting = waiting;
        }
        self.remember(how, report);
        self.heard(how);
        let unpriced = report.cost_usd.is_none() && report.tokens.is_some();
        if unpriced && self.plan.limits.cost_usd.is_some() && !self.plan.limits.unknown_cost {
            let detail =
                format!("nobody knows what iteration {iteration} cost: its model has no price");
            self.fault = Some((Fault::Cost, detail));
        }
        if !report.survivors.is_empty() {
            let pids: Vec<String> = report.survivors.iter().map(u32::to_string).collect();
            let detail = format!("processes outlived KILL: {}", pids.join(", "));
            self.fault = Some((Fault::Survivors, detail));
        }
        self.judge_iteration();
    }

    /// What people said is told again unless the agent had its time with it.
    fn heard(&mut self, how: How) {
        let cut_short = matches!(
            how,
            How::Stopped | How::Unready | How::Faulted | How::Interrupted
        );
        let refunded = self.recent.back().is_some_and(|last| last.refunded);
        if !cut_short && !refunded && self.process.is_some() {
            self.question = None;
            self.answers.drain(..self.answers_told);
        }
        self.answers_told = 0;
    }

    /// Writes the newest iteration into the books.
    fn remember(&mut self, how: How, report: &Report) {
        let by_itself = matches!(how, How::Exited | How::Lingered | How::Matched);
        let reason = self.reason_of(how, report);
        let refunded = reason.is_some_and(|reason| by_itself && self.suffer(reason, report));
        let mut iteration = Iteration {
            number: self.iteration,
            how,
            exit: report.exit,
            ms: report.ms,
            cost_usd: report.cost_usd,
            reason,
            refunded,
            finished: report.finished,
            agent: (!self.plan.fallback.is_empty()).then(|| self.agent().name.clone()),
            tokens: report.tokens,
            steps: report.steps,
            error: report.error.clone(),
            denied: report.denied,
            denial: report.denial.clone(),
            claimed: self.claimed(),
            checks: self.checks.clone(),
            tasks: Vec::new(),
            saved: None,
        };
        match report.cost_usd {
            Some(usd) => self.cost_usd = (self.cost_usd + usd).min(COST_MAX),
            // At a limit nothing was begun, unless tokens tell otherwise.
            None => self.cost_unknown |= !refunded || report.tokens.is_some(),
        }
        self.tokens += report.tokens.unwrap_or_default();
        self.count_session(report);
        let failed = iteration.is_failure() && self.claims.exit_waiting.is_none();
        // What was killed for another reason, or asked to be left alone, did not fail.
        iteration.error = iteration.error.filter(|_| failed || refunded);
        let mut rest_ms = self.plan.rest.delay_ms;
        if refunded {
            self.counted = self.counted.saturating_sub(1);
        } else if failed {
            self.total_failures += 1;
            self.consecutive_failures += 1;
            rest_ms = rest_ms.max(self.backoff_ms(self.consecutive_failures));
        } else if matches!(
            how,
            How::Exited | How::Lingered | How::Matched | How::Marked
        ) {
            self.consecutive_failures = 0;
            self.recovered();
        }
        self.rest_until_ms = self.clock_ms.saturating_add(rest_ms);
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(iteration);
    }

    /// Remembers what a session has taken: its agent may go on with it, and count that once more.
    fn count_session(&mut self, report: &Report) {
        let Some(id) = &report.session else { return };
        let known = self.sessions.iter().position(|session| session.id == *id);
        let mut session = match known {
            Some(place) => self.sessions.remove(place),
            None => Session {
                id: id.clone(),
                cost_usd: 0.0,
                tokens: Tokens::default(),
            },
        };
        session.cost_usd = (session.cost_usd + report.cost_usd.unwrap_or(0.0)).min(COST_MAX);
        session.tokens += report.tokens.unwrap_or_default();
        if self.sessions.len() == SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push(session);
    }

    fn judge_iteration(&mut self) {
        if self.fault.is_some() {
            self.proceed();
        } else if self.wish.is_now() {
            self.keep_or_proceed();
        } else {
            self.begin_checks();
        }
    }

    /// A claim between iterations is judged by checks that have run.
    fn judge_claim(&mut self) {
        if self.checks.iter().any(Option::is_none) {
            self.begin_checks();
        } else {
            self.proceed();
        }
    }

    pub(super) fn backoff_ms(&self, failures: u32) -> u64 {
        let rest = &self.plan.rest;
        doubled(
            rest.backoff_ms,
            failures.saturating_sub(1),
            rest.backoff_cap_ms,
        )
    }

    fn faulted(&mut self, class: Fault, detail: &str) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        self.fault = Some((class, detail.to_owned()));
        match self.phase {
            Phase::Running { started: true, .. } if self.process.is_some() => {
                self.kill(How::Faulted)
            }
            // It was written down as begun, and then could not be started.
            Phase::Running { started: true, .. } => {
                self.remember(
                    How::Faulted,
                    &Report {
                        cost_usd: Some(0.0),
                        ..Report::default()
                    },
                );
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
        if let Phase::Draining { until_ms, stop } = &mut self.phase {
            *stop |= until_ms.is_some_and(|at| at <= self.clock_ms);
        }
    }

    fn kill(&mut self, why: How) {
        self.phase = Phase::Killing { why, hard: false };
    }
}

/// A stop outweighs a pause, now outweighs later, and a second signal means now. Only `Go` takes back.
fn escalate(before: Wish, asked: Wish, second_signal: bool) -> Wish {
    if before == Wish::Go || asked == Wish::Go {
        return asked;
    }
    let stop = [before, asked]
        .iter()
        .any(|wish| matches!(wish, Wish::Stop | Wish::StopNow));
    let now = second_signal || before.is_now() || asked.is_now();
    match (stop, now) {
        (true, true) => Wish::StopNow,
        (true, false) => Wish::Stop,
        (false, true) => Wish::PauseNow,
        (false, false) => Wish::Pause,
    }
}
