//! Makes plans and feeds events, so that a test reads in a few lines.

use crate::engine::event::{
    CheckReport, Door, Event, Exit, Fault, Marker, Notice, Now, Report, Said, Wish,
};
use crate::engine::plan::{
    Agent, Check, Context, Grace, Level, Limits, OnFail, Plan, Proof, Rest, Scm, Task, Worktree,
};
use crate::engine::scm::{Skip, TaskReport};
use crate::engine::signals;
use crate::engine::usage::Prices;
use crate::engine::{Effect, Limit, Outcome, Phase, State};

pub(super) const TEMPLATE: &str = include_str!("../../../presets/prompt.md");

/// The plan of a loop with nothing but a task, by the defaults of the program.
pub(super) fn plan() -> Plan {
    Plan {
        task: Task {
            title: None,
            text: Some("Write the parser.".into()),
            file: None,
        },
        proof: Proof {
            preflight: true,
            fallback: vec!["COMPLETE".into(), "DONE".into()],
            ..Proof::default()
        },
        limits: Limits {
            iterations: Some(25),
            failures: Some(5),
            iteration_ms: Some(7_200_000),
            ..Limits::default()
        },
        rest: Rest {
            delay_ms: 0,
            backoff_ms: 1000,
            backoff_cap_ms: 300_000,
            probe_ms: 30_000,
            probe_cap_ms: 900_000,
        },
        agent: Agent {
            name: "agent".into(),
            command: vec!["agent".into()],
            ..Agent::default()
        },
        context: Context {
            level: Level::Full,
            diff_chars: 5000,
            output_chars: 2000,
            bus: 0,
            template: TEMPLATE.into(),
        },
        fallback: vec![],
        prices: Prices::default(),
        grace: Grace {
            linger_ms: 10_000,
            term_ms: 5000,
            marker_ms: 30_000,
            survivor_ms: 30_000,
            ready_ms: 30_000,
            children_ms: Some(300_000),
        },
        workspace: "/work".into(),
        worktree: None,
        session: None,
        covered: Vec::new(),
        scm: Scm::default(),
        notify: None,
        share_workspace: false,
        log_cap: 1 << 26,
        min_free: 1 << 20,
    }
}

/// A place of its own.
pub(super) fn worktree() -> Worktree {
    Worktree {
        path: "/trees/a".into(),
        branch: "ralph/a".into(),
        new_branch: true,
        repository: "/repo/.git".into(),
        from: "/repo".into(),
        base: "1a2b3c4d".into(),
        base_branch: Some("main".into()),
        commit_timeout_ms: 1000,
    }
}

/// The check at this place.
pub(super) fn check(place: usize) -> Check {
    Check {
        command: format!("make test{place}"),
        slug: format!("test{place}"),
        timeout_ms: 1000,
        on_fail: OnFail::Append,
    }
}

pub(super) fn green() -> CheckReport {
    CheckReport {
        exit: Exit::code(0),
        timed_out: false,
        ms: 10,
    }
}

pub(super) fn red() -> CheckReport {
    CheckReport {
        exit: Exit::code(1),
        timed_out: false,
        ms: 10,
    }
}

pub(super) fn kept() -> TaskReport {
    TaskReport {
        exit: Exit::code(0),
        ms: 10,
        commit: Some("1a2b3c4d".into()),
        ..TaskReport::default()
    }
}

pub(super) fn lost() -> TaskReport {
    TaskReport {
        exit: Exit::code(1),
        ms: 10,
        output: "no".into(),
        ..TaskReport::default()
    }
}

/// Something that happens to a loop.
pub(super) type Way = fn(Loop) -> Loop;

/// A loop and everything that has happened to it.
#[derive(Clone)]
pub(super) struct Loop {
    pub(super) state: State,
}

/// The plan, in words.
impl Loop {
    pub(super) fn new() -> Self {
        Self {
            state: State::new(plan()),
        }
    }

    pub(super) fn with(self, change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = self.state.plan;
        change(&mut plan);
        Self {
            state: State::new(plan),
        }
    }

    pub(super) fn checks(self, count: usize) -> Self {
        self.with(|plan| plan.proof.checks = (0..count).map(check).collect())
    }

    pub(super) fn promise(self, text: &str) -> Self {
        self.with(|plan| plan.proof.promise = Some(text.into()))
    }

    pub(super) fn pattern(self, text: &str) -> Self {
        self.with(|plan| plan.proof.pattern = Some(text.into()))
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

    pub(super) fn no_promise(self) -> Self {
        self.with(|plan| plan.proof.fallback.clear())
    }

    pub(super) fn no_preflight(self) -> Self {
        self.with(|plan| plan.proof.preflight = false)
    }

    pub(super) fn at_most(self, iterations: u32) -> Self {
        self.with(|plan| plan.limits.iterations = Some(iterations))
    }

    /// With one check that preflight finds in this colour.
    pub(super) fn preflight(colour: &str) -> Self {
        Self::new().checks(1).open().check(colour)
    }
}

/// What happens, in words.
impl Loop {
    pub(super) fn feed(self, event: Event) -> Self {
        self.feed_alone(event).childless()
    }

    /// The same, and nobody looks for child loops.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a test reads better without borrowing"
    )]
    pub(super) fn feed_alone(mut self, event: Event) -> Self {
        self.state.step(
            Now {
                wall_ms: self.state.wall_ms,
                delta_ms: 0,
            },
            &event,
        );
        self
    }

    /// Whoever looks for child loops finds none.
    pub(super) fn childless(self) -> Self {
        if self.is_draining() {
            self.drained(&[], &[])
        } else {
            self
        }
    }

    /// No child loop is left.
    pub(super) fn drained(self, waited: &[&str], stopped: &[&str]) -> Self {
        let [waited, stopped] =
            [waited, stopped].map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let iteration = self.state.iteration;
        self.feed_alone(Event::Drained {
            iteration,
            waited,
            stopped,
        })
    }

    /// Time passes, and nothing happens but an alarm.
    pub(super) fn after(mut self, ms: u64) -> Self {
        let wall_ms = self.state.wall_ms + ms as i64;
        self.state.step(
            Now {
                wall_ms,
                delta_ms: ms,
            },
            &Event::Woke,
        );
        self.childless()
    }

    pub(super) fn open(self) -> Self {
        self.feed(Event::Opened {
            pid: 1,
            version: "0".into(),
            cost_usd: None,
            tokens: None,
            inside: false,
        })
    }

    /// The checks that are ordered end, one after the other, in these colours: `g` or `r`.
    pub(super) fn check(mut self, colours: &str) -> Self {
        for colour in colours.chars() {
            let orders = self.state.orders();
            let [Effect::Check { iteration, check }] = orders[..] else {
                panic!("no check is ordered: {orders:?}")
            };
            let report = if colour == 'g' { green() } else { red() };
            self = self.feed(Event::Checked {
                iteration,
                check,
                report,
            });
        }
        self
    }

    /// The tasks that are ordered end, one after the other: `k` kept, `l` lost, `u` unchanged, `e` empty.
    pub(super) fn keep(mut self, ends: &str) -> Self {
        for end in ends.chars() {
            let orders = self.state.orders();
            let [Effect::Commit { iteration, task }] = orders[..] else {
                panic!("no task is ordered: {orders:?}")
            };
            let report = match end {
                'k' => kept(),
                'l' => lost(),
                'u' => TaskReport {
                    skipped: Some(Skip::Unchanged),
                    ..TaskReport::default()
                },
                _ => TaskReport {
                    skipped: Some(Skip::Empty),
                    ..TaskReport::default()
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

    /// The iteration that is ordered begins.
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
        })
    }

    pub(super) fn end(self, report: Report) -> Self {
        let iteration = self.state.iteration;
        self.feed(Event::Ended { iteration, report })
    }

    pub(super) fn exit(self, code: i32) -> Self {
        self.end(Report {
            exit: Exit::code(code),
            cost_usd: Some(0.0),
            ..Report::default()
        })
    }

    /// The agent exits well with these last words, read as the shell reads them.
    pub(super) fn say(self, words: &str) -> Self {
        let said = signals::read(words, &self.state.promises());
        self.end(Report {
            exit: Exit::code(0),
            cost_usd: Some(0.0),
            said,
            ..Report::default()
        })
    }

    pub(super) fn notice(self, notice: Notice) -> Self {
        let iteration = self.state.iteration;
        self.feed(Event::Noticed {
            iteration,
            notice,
            words: None,
        })
    }

    pub(super) fn marker(self, marker: Marker) -> Self {
        self.notice(Notice::Marker(marker))
    }

    pub(super) fn ask(self, wish: Wish, by: Door) -> Self {
        self.feed(Event::Asked {
            wish,
            by,
            inbox: None,
        })
    }

    pub(super) fn resume(self) -> Self {
        self.ask(Wish::Go, Door::Inbox)
    }

    pub(super) fn fault(self) -> Self {
        self.feed(Event::Faulted {
            class: Fault::Disk,
            detail: "full".into(),
        })
    }

    /// Bad exits, each followed by the rest that it costs.
    pub(super) fn failures(mut self, count: u32) -> Self {
        for _ in 0..count {
            self = self.start().exit(1);
            let rest = self.state.rest_until_ms - self.state.clock_ms;
            self = self.after(rest);
        }
        self
    }
}

/// What is seen, in words.
impl Loop {
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
        self.state
            .outcome()
            .cloned()
            .unwrap_or_else(|| panic!("no ending: {:?}", self.state.phase))
    }

    pub(super) fn limit(&self) -> Limit {
        match self.outcome() {
            Outcome::Limit { limit, .. } => limit,
            other => panic!("no limit: {other:?}"),
        }
    }
}

/// A promise made as it should be.
pub(super) fn promised() -> Said {
    Said {
        promised: true,
        ..Said::default()
    }
}
