//! `ralph set`: changes a loop's limits, at once if it is running, else for its next resume.

use super::open_loop::{open_as_operator, send};
use crate::cli::SetArgs;
use crate::config::keys::{kebab_case, limit_syntax};
use crate::config::units::parse_limit;
use crate::engine::{Event, ExitCode, Limit, LimitChange, Now, Outcome, Phase, State, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::store::InboxMessage;
use crate::ui::print::{print_message, warn};

pub(crate) fn set(args: &SetArgs) -> Result<ExitCode, CommandError> {
    let changes = args
        .limits
        .iter()
        .map(|arg| parse_change(arg))
        .collect::<Result<Vec<_>, _>>()?;
    let handle = open_as_operator(&args.name)?;
    if matches!(handle.view.state.outcome(), Some(Outcome::Done { .. })) {
        return Err(CommandError::usage(
            format!("{:?} is done: limits no longer apply", args.name),
            "start a new loop with `ralph run`; you can reuse the name",
        ));
    }
    let plan = &handle.view.state.plan;
    if !plan.agent.reports_cost
        && changes
            .iter()
            .any(|change| change.limit == Limit::Cost && change.max.is_some())
    {
        warn(format!(
            "the agent `{}` may not report its cost; the cost limit would then have no effect",
            plan.agent.name
        ));
    }
    let mut after = handle.view.state.clone();
    let mut messages = Vec::new();
    for limit in changes {
        after.step(
            Now::default(),
            &Event::Changed {
                limit: limit.clone(),
                inbox: None,
            },
        );
        messages.push(InboxMessage::Changed { limit });
    }
    send(&handle, &messages)?;
    let consequence = describe_consequence(&handle, &after);
    print_message(&format!(
        "set {} for {}\n{consequence}",
        args.limits.join(" "),
        args.name
    ));
    Ok(ExitCode::Success)
}

/// Describes the effect of the new limits: the loop ends, or the user can resume it. Empty if the
/// loop just keeps running.
fn describe_consequence(handle: &LoopHandle, after: &State) -> String {
    let name = handle.dir.name();
    let is_resting = matches!(handle.view.state.phase, Phase::Resting { .. });
    // Ignore the failure limit unless the loop is resting: the running iteration may succeed, and
    // resuming resets the count.
    let used_up = after
        .reached_limit()
        .filter(|limit| !limit.row().is_reset_by_resume || (handle.is_live() && is_resting));
    let why = used_up.map(|limit| format!("{} ({})", limit.row().exhausted, after.usage_of(limit)));
    match (handle.status(), why) {
        (Status::Starting | Status::Running, None) => String::new(),
        (Status::Starting, Some(why)) => format!("{why}: it ends at once\n"),
        (Status::Running, Some(why)) if is_resting => format!("{why}: it ends now\n"),
        (Status::Running, Some(why)) => format!("{why}: it ends after this iteration\n"),
        (status, None) => format!(
            "its status is {}; to continue, run `ralph resume {name}`\n",
            status.as_str()
        ),
        (status, Some(why)) => {
            let raised = after.raised_limits().unwrap_or_default();
            format!(
                "its status is {}, and {why}; to continue, run `ralph set {name} {raised} && ralph resume {name}`\n",
                status.as_str()
            )
        }
    }
}

/// Parses an argument such as `max-cost=2.50`.
fn parse_change(arg: &str) -> Result<LimitChange, CommandError> {
    let parse = || {
        let (key, value) = arg.split_once('=')?;
        let limit = Limit::from_key(&kebab_case(key))?;
        let max = parse_limit(limit, value).ok()?;
        Some(LimitChange { limit, max })
    };
    parse().ok_or_else(|| {
        CommandError::usage(
            format!("{arg:?} is not a valid LIMIT=VALUE"),
            format!("use {}", limit_syntax()),
        )
    })
}
