//! `ralph set`: a limit changes, on a living loop or for its next resume.

use crate::cli::SetWords;
use crate::config::units::{Span, amount};
use crate::engine::event::Change;
use crate::engine::{Event, Limit, Now, Outcome, Phase, State, Status};
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::handle::Visit;
use crate::store::{Message, inbox};
use crate::ui::say;
use crate::ui::status::limit_raised;
use std::str::FromStr;

pub(crate) fn set(words: &SetWords) -> Result<i32, Failure> {
    let changes = words
        .limits
        .iter()
        .map(|word| change(word))
        .collect::<Result<Vec<_>, _>>()?;
    let visit = Visit::as_operator(&words.name)?;
    if matches!(visit.view.state.outcome(), Some(Outcome::Done { .. })) {
        return Err(Failure::usage(
            format!("{:?} is done: no limit matters to it any more", words.name),
            "start a new loop with ralph run; its name may be used again",
        ));
    }
    let plan = &visit.view.state.plan;
    if !plan.agent.reports_cost
        && changes
            .iter()
            .any(|change| matches!(change, Change::MaxCost(Some(_))))
    {
        warn(format!(
            "the cost of `{}` may never be known, and then this limit never acts",
            plan.agent.name
        ));
    }
    let mut after = visit.view.state.clone();
    for limit in changes {
        after.step(
            Now::default(),
            &Event::Changed {
                limit: limit.clone(),
                inbox: None,
            },
        );
        inbox::append(&visit.dir, &Message::Changed { limit })?;
    }
    let then = then(&visit, &after);
    say(&format!(
        "set {} for {}\n{then}",
        words.limits.join(" "),
        words.name
    ));
    Ok(0)
}

/// What comes of it: a limit that is used up already lets nothing start, and that is said.
fn then(visit: &Visit, after: &State) -> String {
    let (name, rests) = (
        visit.dir.name(),
        matches!(visit.view.state.phase, Phase::Resting { .. }),
    );
    // The running agent may still do well, and a person who resumes forgives failures.
    let used_up = after
        .reached()
        .filter(|limit| *limit != Limit::Failures || (visit.held && rests));
    let why = used_up.map(|limit| format!("{} ({})", limit.used_up(), after.used(limit)));
    match (visit.status(), why) {
        (Status::Running, None) => String::new(),
        (Status::Running, Some(why)) if rests => format!("{why}: it ends now\n"),
        (Status::Running, Some(why)) => format!("{why}: it ends after this iteration\n"),
        (status, None) => format!("it is {}: ralph resume {name}\n", status.word()),
        (status, Some(why)) => {
            let more = used_up
                .and_then(|limit| limit_raised(limit, after))
                .unwrap_or_default();
            format!(
                "it is {}, and {why}: ralph set {name} {more} && ralph resume {name}\n",
                status.word()
            )
        }
    }
}

fn change(word: &str) -> Result<Change, Failure> {
    let hint = "one of max-iterations=N, max-cost=USD, max-tokens=N, max-time=D, max-failures=N; 0 is no limit";
    let wrong = || Failure::usage(format!("{word:?} is not a limit and its value"), hint);
    let (name, value) = word.split_once('=').ok_or_else(wrong)?;
    Ok(match name {
        "max-iterations" => Change::MaxIterations(limit::<u32>(value).ok_or_else(wrong)?.into()),
        "max-failures" => Change::MaxFailures(limit::<u32>(value).ok_or_else(wrong)?.into()),
        "max-cost" => Change::MaxCost(Bound(amount(value).map_err(|_| wrong())?).into()),
        "max-tokens" => Change::MaxTokens(limit::<u64>(value).ok_or_else(wrong)?.into()),
        "max-time" => Change::MaxTime(
            Option::<Span>::from(limit(value).ok_or_else(wrong)?).map(|span| span.0),
        ),
        _ => return Err(wrong()),
    })
}

/// A value of at least zero; zero lifts the limit.
struct Bound<T>(T);

impl<T: PartialOrd + Default> From<Bound<T>> for Option<T> {
    fn from(bound: Bound<T>) -> Self {
        Some(bound.0).filter(|value| *value > T::default())
    }
}

fn limit<T: FromStr + PartialOrd + Default>(value: &str) -> Option<Bound<T>> {
    value
        .parse()
        .ok()
        .filter(|value| *value >= T::default())
        .map(Bound)
}
