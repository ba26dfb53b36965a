//! A builder for loops, which keeps tests short.

pub(super) use super::samples::{
    check, checked, committed, exited, failed_task, green, plan, red, worktree,
};

use crate::engine::event::{
    AgentReport, Event, Fault, Marker, Notice, Now, Request, RequestSource, TextSignals,
};
use crate::engine::plan::{FIRST_RULES, Plan, Signal};
use crate::engine::scm::{ScmTaskReport, SkipReason};
use crate::engine::signals;
use crate::engine::{Effect, Limit, Outcome, Phase, State};

/// Something that happens to a loop, such as an event.
pub(super) type Transition = fn(TestLoop) -> TestLoop;

/// A loop under test. Its methods change the plan, feed events or inspect the state.
#[derive(Clone)]
pub(super) struct TestLoop {
    pub(super) state: State,
    /// The content that checks report; `None` outside git.
    pub(super) tree: Option<String>,
}

// Changes to the plan.
impl TestLoop {
    pub(super) fn new() -> Self {
        Self {
            state: State::new(plan()),
            tree: None,
        }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = self.state.plan;
        change(&mut plan);
        self.state = State::new(plan);
        self
    }

    pub(super) fn checks(self, count: usize) -> Self {
        self.with(|plan| plan.proof.checks = (0..count).map(check).collect())
    }

    pub(super) fn promise(self, text: &str) -> Self {
        self.with(|plan| plan.proof.signals.push(Signal::Promise(text.into())))
    }

    pub(super) fn pattern(self, text: &str) -> Self {
        self.with(|plan| plan.proof.signals.push(Signal::Pattern(text.into())))
    }

    pub(super) fn tasks(self, tasks: &[&str]) -> Self {
        self.with(|plan| {
            plan.scm.command = vec!["git".into()];
            plan.scm.tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
        })
    }

    pub(super) fn worktree(self) -> Self {
        self.with(|plan| plan.worktree = Some(worktree()))
    }

    /// Asks for no promise. Call it after [`Self::checks`].
    pub(super) fn no_promise(self) -> Self {
        self.with(|plan| match plan.proof.checks[..] {
            [] => plan.proof.fallback.clear(),
            _ => plan.proof.until_green = true,
        })
    }

    /// Applies the rules of journals that name none.
    pub(super) fn first_rules(self) -> Self {
        self.with(|plan| {
            plan.rules = FIRST_RULES;
            if std::mem::take(&mut plan.proof.until_green) {
                plan.proof.fallback.clear();
            }
        })
    }

    pub(super) fn no_preflight(self) -> Self {
        self.with(|plan| plan.proof.preflight = false)
    }

    pub(super) fn at_most(self, iterations: u32) -> Self {
        self.with(|plan| plan.limits.iterations = Some(iterations))
    }

    /// Returns a loop with one check that preflight finds green (`g`) or red (`r`).
    pub(super) fn preflight(color: &str) -> Self {
        Self::new().checks(1).open().check(color)
    }

    /// Like [`Self::preflight`], for a loop that ends as soon as its check is green.
    pub(super) fn until_green(color: &str) -> Self {
        Self::new().checks(1).no_promise().open().check(color)
    }
}

// Events.
impl TestLoop {
    pub(super) fn feed(self, event: Event) -> Self {
        self.feed_without_draining(event).drain_without_children()
    }

    /// Feeds an event without draining child loops, which the test does itself.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a test reads better without borrowing"
    )]
    pub(super) fn feed_without_draining(mut self, event: Event) -> Self {
        self.state.step(
            Now {
                wall_ms: self.state.wall_ms,
                delta_ms: 0,
            },
            &event,
        );
        self
    }

    /// Reports that there are no child loops, if the loop waits for them.
    pub(super) fn drain_without_children(self) -> Self {
        if self.is_draining() {
            self.drained(&[], &[])
        } else {
            self
        }
    }

    /// Reports that all child loops have ended.
    pub(super) fn drained(self, waited: &[&str], stopped: &[&str]) -> Self {
        let [waited, stopped] =
            [waited, stopped].map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let iteration = self.state.iteration;
        self.feed_without_draining(Event::Drained {
            iteration,
            waited,
            stopped,
        })
    }

    /// Lets time pass, then wakes the engine.
    pub(super) fn after(mut self, ms: u64) -> Self {
        let wall_ms = self.state.wall_ms + ms as i64;
        self.state.step(
            Now {
                wall_ms,
                delta_ms: ms,
            },
            &Event::Woke,
        );
        self.drain_without_children()
    }

    pub(super) fn open(self) -> Self {
        self.feed(Event::Opened {
            pid: 1,
            version: "0".into(),
            cost_usd: None,
            tokens: None,
            in_session: false,
            boot: None,
        })
    }

    /// Ends the ordered checks one by one: `g` green, `r` red.
    pub(super) fn check(mut self, colors: &str) -> Self {
        for color in colors.chars() {
            let orders = self.state.orders();
            let [.., Effect::Check { iteration, check }] = orders[..] else {
                panic!("no check is ordered: {orders:?}")
            };
            let report = if color == 'g' { green() } else { red() };
            let tree = self.tree.clone();
            self = self.feed(Event::Checked {
                iteration,
                check,
                report,
                tree,
                written: vec![],
            });
        }
        self
    }

    /// Ends the ordered SCM tasks one by one: `s` succeeded, `f` failed, `u` unchanged, `e` empty.
    pub(super) fn scm_tasks(mut self, ends: &str) -> Self {
        for end in ends.chars() {
            let orders = self.state.orders();
            let [.., Effect::ScmTask { iteration, task }] = orders[..] else {
                panic!("no task is ordered: {orders:?}")
            };
            let report = match end {
                's' => committed(),
                'f' => failed_task(),
                'u' => ScmTaskReport {
                    skipped: Some(SkipReason::Unchanged),
                    ..ScmTaskReport::default()
                },
                _ => ScmTaskReport {
                    skipped: Some(SkipReason::Empty),
                    ..ScmTaskReport::default()
                },
            };
            self = self.feed(Event::Committed {
                iteration,
                task,
                report,
            });
        }
        self
    }

    pub(super) fn tree(mut self, id: &str) -> Self {
        self.tree = Some(id.into());
        self
    }

    /// Starts the ordered iteration.
    pub(super) fn start(self) -> Self {
        let iteration = self.state.iteration + 1;
        self.started_as_ordered(iteration).feed(Event::Spawned {
            iteration,
            pid: 100 + iteration,
            start_time: 7,
        })
    }

    pub(super) fn started_as_ordered(self, iteration: u32) -> Self {
        let orders = self.state.orders();
        assert_eq!(
            orders.first(),
            Some(&Effect::Run { iteration }),
            "{:?}",
            self.state
        );
        self.feed(Event::Started {
            iteration,
            agent: None,
            tree: None,
            baseline: None,
            version: None,
        })
    }

    pub(super) fn end(self, report: AgentReport) -> Self {
        let iteration = self.state.iteration;
        self.feed(Event::Ended { iteration, report })
    }

    pub(super) fn exit(self, code: i32) -> Self {
        self.end(exited(code))
    }

    /// Ends the agent with exit code 0 and `message` as its final message.
    pub(super) fn say(self, message: &str) -> Self {
        let signals = signals::read(message, &self.state.promises());
        self.end(AgentReport {
            signals,
            ..exited(0)
        })
    }

    pub(super) fn notice(self, notice: Notice) -> Self {
        let iteration = self.state.iteration;
        self.feed(Event::Noticed {
            iteration,
            notice,
            text: None,
        })
    }

    pub(super) fn marker(self, marker: Marker) -> Self {
        self.notice(Notice::Marker(marker))
    }

    pub(super) fn ask(self, request: Request, by: RequestSource) -> Self {
        self.feed(Event::Asked {
            request,
            by,
            inbox: None,
        })
    }

    pub(super) fn resume(self) -> Self {
        self.ask(Request::Go, RequestSource::Inbox)
    }

    pub(super) fn fault(self) -> Self {
        self.feed(Event::Faulted {
            class: Fault::Disk,
            detail: "full".into(),
        })
    }

    /// Fails `count` iterations, and rests after each one as long as the engine orders.
    pub(super) fn failures(mut self, count: u32) -> Self {
        for _ in 0..count {
            self = self.start().exit(1);
            let rest = self.state.rest_until_ms - self.state.clock_ms;
            self = self.after(rest);
        }
        self
    }
}

// Questions.
impl TestLoop {
    pub(super) fn orders(&self) -> Vec<Effect> {
        self.state.orders()
    }

    pub(super) fn runs(&self) -> Option<u32> {
        match self.orders().first() {
            Some(Effect::Run { iteration }) => Some(*iteration),
            _ => None,
        }
    }

    pub(super) fn kills(&self) -> Option<bool> {
        match self.orders()[..] {
            [Effect::Kill { hard, .. }] => Some(hard),
            _ => None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.state.phase, Phase::Ended(Outcome::Done { .. }))
    }

    pub(super) fn is_draining(&self) -> bool {
        matches!(self.state.phase, Phase::Draining { .. })
    }

    pub(super) fn is_paused(&self) -> bool {
        self.state.phase == Phase::Paused
    }

    pub(super) fn is_checking(&self) -> bool {
        self.state.phase == Phase::Checking
    }

    pub(super) fn is_committing(&self) -> bool {
        self.state.phase == Phase::Committing
    }

    pub(super) fn outcome(&self) -> Outcome {
        let outcome = self.state.outcome().cloned();
        outcome.unwrap_or_else(|| panic!("no ending: {:?}", self.state.phase))
    }

    pub(super) fn limit(&self) -> Limit {
        match self.outcome() {
            Outcome::Limit { limit, .. } => limit,
            other => panic!("no limit: {other:?}"),
        }
    }
}

pub(super) fn promised() -> TextSignals {
    TextSignals {
        promised: true,
        ..TextSignals::default()
    }
}
