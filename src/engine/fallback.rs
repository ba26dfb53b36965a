//! Which of a loop's agents works next, which of them rest until when, and what a bad end of one means for all.

use super::event::{Fault, Report};
use super::failure::{Course, Kind, Reason};
use super::plan::{Agent, Approve};
use super::state::State;
use serde::{Deserialize, Serialize};

/// Where one agent stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// It rests until then, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_wall_ms: Option<i64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Kind>,
    /// How often in a row it was sent to rest.
    #[serde(default)]
    pub waits: u32,
    /// Why it does not work at all until a person has mended that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<(Fault, String)>,
}

/// Who is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This agent, by its place.
    Of(usize),
    /// Nobody before this time, in milliseconds since 1970.
    NobodyUntil(i64),
}

impl State {
    /// The agent that works now, or worked last.
    pub fn agent(&self) -> &Agent {
        let next = self
            .using
            .checked_sub(1)
            .and_then(|place| self.plan.fallback.get(place));
        next.unwrap_or(&self.plan.agent)
    }

    fn standing(&mut self) -> &mut Standing {
        let places = 1 + self.plan.fallback.len();
        self.team
            .resize_with(places.max(self.team.len()), Standing::default);
        let place = self.using.min(places - 1);
        &mut self.team[place]
    }

    /// Who is next: the first who neither rests nor is out.
    pub fn turn(&self) -> Turn {
        let nobody = Standing::default();
        let places = 0..=self.plan.fallback.len();
        let mut fit = places.map(|place| (place, self.team.get(place).unwrap_or(&nobody)));
        let mut soonest = i64::MAX;
        let first = fit.find(|(_, standing)| {
            let until = standing.until_wall_ms.filter(|until| *until > self.wall_ms);
            if standing.out.is_none() {
                soonest = soonest.min(until.unwrap_or(i64::MAX));
            }
            standing.out.is_none() && until.is_none()
        });
        match first {
            Some((place, _)) => Turn::Of(place),
            // All are out: that is a fault, and asked before.
            None if soonest == i64::MAX => Turn::Of(0),
            None => Turn::NobodyUntil(soonest),
        }
    }

    /// Follows the table of reasons. True: the iteration and its failure do not count.
    pub(super) fn suffer(&mut self, reason: Reason, report: &Report) -> bool {
        let others = !self.plan.fallback.is_empty() && reason.kind.is_the_agents_own();
        match reason.kind.course() {
            Course::Fail => false,
            Course::Wait => {
                let (now_ms, waits) = (self.wall_ms, self.standing().waits);
                let probe_ms =
                    doubled(self.plan.rest.probe_ms, waits, self.plan.rest.probe_cap_ms) as i64;
                let standing = self.standing();
                standing.waits = standing.waits.saturating_add(1);
                standing.why = Some(reason.kind);
                // A reset that has passed, and did not help, is no reset.
                let until = reason.until_ms.filter(|until| *until > now_ms);
                standing.until_wall_ms = until.or_else(|| Some(now_ms.saturating_add(probe_ms)));
                true
            }
            Course::Stop(fault) => {
                let detail = self.complaint(reason.kind, report);
                let standing = self.standing();
                standing.why = Some(reason.kind);
                standing.out = Some((fault, detail));
                let all_out = (0..=self.plan.fallback.len()).all(|place| {
                    self.team
                        .get(place)
                        .is_some_and(|standing| standing.out.is_some())
                });
                if !others || all_out {
                    self.fault = self.standing().out.take();
                }
                others
            }
        }
    }

    /// It works: nothing that it had to wait for before counts any more.
    pub(super) fn recovered(&mut self) {
        *self.standing() = Standing::default();
    }

    /// A person has mended something, or says so.
    pub(super) fn welcome_back(&mut self) {
        self.team
            .iter_mut()
            .for_each(|standing| standing.out = None);
    }

    /// A person does not want to wait.
    pub(super) fn hurry(&mut self) {
        self.rest_until_ms = 0;
        self.team
            .iter_mut()
            .for_each(|standing| standing.until_wall_ms = None);
    }

    /// What is wrong, in the agent's words, and what mends it.
    fn complaint(&self, kind: Kind, report: &Report) -> String {
        let agent = self.agent();
        let rule = agent.rule(report.exit).filter(|_| report.reason.is_none());
        let exited = rule.map(|rule| format!("{} exited with {}", agent.name, rule.code));
        let means = rule.map_or(kind.words(), |rule| rule.means.words());
        let mut words = format!("{}: {means}", exited.unwrap_or_else(|| agent.name.clone()));
        let last = report.error.as_deref().or(report.denial.as_deref());
        if let Some(last) = last
            .and_then(|error| error.lines().last())
            .filter(|_| rule.is_none())
        {
            words.extend([" (", last.trim(), ")"]);
        }
        let mends = match kind {
            _ if rule.is_some_and(|rule| !rule.hint.is_empty()) => {
                rule.map(|rule| rule.hint.clone())
            }
            Kind::Login if !agent.login.is_empty() => Some(format!("log in: {}", agent.login)),
            Kind::Credit => {
                Some("add credit to its account, or let another login or agent pay".into())
            }
            Kind::Model => Some("name one that it knows with --model".into()),
            Kind::Denied if agent.approve != Some(Approve::All) => {
                let more = if agent.approve == Some(Approve::None) {
                    "edits"
                } else {
                    "all"
                };
                Some(format!("allow it more with --approve {more}"))
            }
            _ => None,
        };
        words.extend(mends.map(|mends| format!(": {mends}")));
        words
    }
}

/// A time doubled so often, up to a cap.
pub(super) fn doubled(base_ms: u64, times: u32, cap_ms: u64) -> u64 {
    base_ms.saturating_mul(1 << times.min(40)).min(cap_ms)
}
