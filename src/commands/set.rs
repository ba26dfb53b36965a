//! `ralph set`: changes limits of a loop, at once if it is running, else for its next resume.

use super::open_loop::open_as_operator;
use crate::cli::SetArgs;
use crate::config::units::{Millis, parse_amount};
use crate::engine::event::LimitChange;
use crate::engine::{Event, Limit, Now, Outcome, Phase, State, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::store::{InboxMessage, inbox};
use crate::ui::outcome_text::limit_raised;
use crate::ui::print::{print_message, warn};
use std::str::FromStr;

pub(crate) fn set(args: &SetArgs) -> Result<i32, CommandError> {
    let changes = args
        .limits
        .iter()
        .map(|arg| parse_change(arg))
        .collect::<Result<Vec<_>, _>>()?;
    let handle = open_as_operator(&args.name)?;
    if matches!(handle.view.state.outcome(), Some(Outcome::Done { .. })) {
        return Err(CommandError::usage(
            format!("{:?} is done: limits no longer apply", args.name),
            "start a new loop with ralph run; you can reuse the name",
        ));
    }
    let plan = &handle.view.state.plan;
    if !plan.agent.reports_cost
        && changes
            .iter()
            .any(|change| matches!(change, LimitChange::MaxCost(Some(_))))
    {
        warn(format!(
            "ralph may not be able to read the cost of `{}`; then this limit never applies",
            plan.agent.name
        ));
    }
    let mut after = handle.view.state.clone();
    for limit in changes {
        after.step(
            Now::default(),
            &Event::Changed {
                limit: limit.clone(),
                inbox: None,
            },
        );
        inbox::append(&handle.dir, &InboxMessage::Changed { limit })?;
    }
    let consequence = describe_consequence(&handle, &after);
    print_message(&format!(
        "set {} for {}\n{consequence}",
        args.limits.join(" "),
        args.name
    ));
    Ok(0)
}

/// Describes what happens next: whether the loop ends because of a limit, and how to resume it.
fn describe_consequence(handle: &LoopHandle, after: &State) -> String {
    let name = handle.dir.name();
    let is_resting = matches!(handle.view.state.phase, Phase::Resting { .. });
    // The running iteration may succeed, and a resume resets the count of failures.
    let used_up = after
        .reached_limit()
        .filter(|limit| *limit != Limit::Failures || (handle.held && is_resting));
    let why =
        used_up.map(|limit| format!("{} ({})", limit.exhausted_text(), after.usage_of(limit)));
    match (handle.status(), why) {
        (Status::Running, None) => String::new(),
        (Status::Running, Some(why)) if is_resting => format!("{why}: it ends now\n"),
        (Status::Running, Some(why)) => format!("{why}: it ends after this iteration\n"),
        (status, None) => format!("it is {}: ralph resume {name}\n", status.as_str()),
        (status, Some(why)) => {
            let raised = used_up
                .and_then(|limit| limit_raised(limit, after))
                .unwrap_or_default();
            format!(
                "it is {}, and {why}: ralph set {name} {raised} && ralph resume {name}\n",
                status.as_str()
            )
        }
    }
}

fn parse_change(arg: &str) -> Result<LimitChange, CommandError> {
    let hint = "use max-iterations=N, max-cost=USD, max-tokens=N, max-time=D or max-failures=N; 0 means no limit";
    let invalid = || CommandError::usage(format!("{arg:?} is not a limit with a value"), hint);
    let (name, value) = arg.split_once('=').ok_or_else(invalid)?;
    Ok(match name {
        "max-iterations" => {
            LimitChange::MaxIterations(parse_limit::<u32>(value).ok_or_else(invalid)?.into())
        }
        "max-failures" => {
            LimitChange::MaxFailures(parse_limit::<u32>(value).ok_or_else(invalid)?.into())
        }
        "max-cost" => {
            LimitChange::MaxCost(LimitValue(parse_amount(value).map_err(|_| invalid())?).into())
        }
        "max-tokens" => {
            LimitChange::MaxTokens(parse_limit::<u64>(value).ok_or_else(invalid)?.into())
        }
        "max-time" => LimitChange::MaxTime(
            Option::<Millis>::from(parse_limit(value).ok_or_else(invalid)?)
                .map(|duration| duration.0),
        ),
        _ => return Err(invalid()),
    })
}

/// The value of a limit; zero means no limit.
struct LimitValue<T>(T);

impl<T: PartialOrd + Default> From<LimitValue<T>> for Option<T> {
    fn from(limit: LimitValue<T>) -> Self {
        Some(limit.0).filter(|value| *value > T::default())
    }
}

fn parse_limit<T: FromStr + PartialOrd + Default>(value: &str) -> Option<LimitValue<T>> {
    value
        .parse()
        .ok()
        .filter(|value| *value >= T::default())
        .map(LimitValue)
}
