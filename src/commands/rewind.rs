//! `ralph rewind`: puts a loop's files back to a checkpoint. The files as they are become the
//! checkpoint `undo` first.

use super::diff::LoopCheckpoints;
use super::open_loop::open_as_operator;
use crate::cli::RewindArgs;
use crate::engine::format::plural;
use crate::engine::{ExitCode, Outcome, Status};
use crate::git::checkpoint::UNDO;
use crate::git::{TreeContent, path_name};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::locks::LoopLocks;
use crate::store::{InboxMessage, inbox};
use crate::ui::outcome_text::resume_command;
use crate::ui::print::{note, print_message};
use std::fmt::Write as _;

/// The most changed files that are listed.
const LISTED_MAX: usize = 50;

pub(crate) fn rewind(args: &RewindArgs) -> Result<ExitCode, CommandError> {
    let name = &args.name;
    let handle = open_as_operator(name)?;
    if let status @ (Status::Starting | Status::Running) = handle.status() {
        return Err(CommandError::usage(
            format!("cannot rewind {name:?} while it is {}", status.as_str()),
            format!("run `ralph pause {name}` or `ralph stop {name}` first"),
        ));
    }
    let checkpoints = LoopCheckpoints::find(&handle)?;
    let number = checkpoints.resolve(&args.to)?;
    let target = checkpoints.get(&args.to)?;
    let plan = &handle.view.state.plan;
    // Until the files are back, neither this loop nor another may work on them.
    let _locks = LoopLocks::acquire(&handle.state_dir, &handle.dir, plan)?;
    let workspace = &plan.workspace;
    let content = TreeContent::find(workspace, &handle.dir.git_scratch());
    let content = content.map_err(CommandError::broken)?.ok_or_else(|| {
        CommandError::usage(
            format!("{} is not in a git repository anymore", workspace.display()),
            "checkpoints are stored in that repository",
        )
    })?;
    let rewound = content
        .rewind(&handle.view.header.id, &target)
        .map_err(|why| CommandError::broken(format!("cannot rewind {name:?}: {why}")))?;
    inbox::append(&handle.dir, &InboxMessage::Rewound { to: number.clone() })?;
    let mut text = String::new();
    for (kind, path) in rewound.changed.iter().take(LISTED_MAX) {
        let _ = writeln!(text, "{kind} {}", path_name(path));
    }
    if let Some(more @ 1..) = rewound.changed.len().checked_sub(LISTED_MAX) {
        let _ = writeln!(text, "… and {}", plural(more as u64, "more file"));
    }
    let state = match number.as_str() {
        UNDO => "before the last rewind".to_owned(),
        "0" => "at its start".to_owned(),
        number => format!("after iteration {number}"),
    };
    let _ = writeln!(
        text,
        "the files of {name} are as they were {state}: {} changed",
        plural(rewound.changed.len() as u64, "file")
    );
    let _ = writeln!(text, "to undo this, run `ralph rewind {name} {UNDO}`");
    if !matches!(handle.view.state.outcome(), Some(Outcome::Done { .. })) {
        let resume = resume_command(name, &handle.view.state, None);
        let _ = writeln!(text, "to continue from here, run `{resume}`");
    }
    print_message(&text);
    for (path, why) in &rewound.kept {
        note(format!("left as it is: {} ({why})", path_name(path)));
    }
    Ok(ExitCode::Success)
}
