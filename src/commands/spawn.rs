//! `ralph spawn`: creates a loop and starts it in the background.

use super::run;
use super::run::ResolvedRun;
use crate::cli::RunArgs;
use crate::engine::ExitCode;
use crate::engine::format::with_limit;
use crate::git::worktree;
use crate::lifecycle::create::{self, Placement, PreparedLoop};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::launch::{check_tmux, launch, location_text};
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::tmux::Tmux;
use crate::store::StateDir;
use crate::ui::print::{print_json, print_message, warn};
use crate::ui::tty::is_terminal;
use serde_json::json;

pub(crate) fn spawn(args: &RunArgs) -> Result<ExitCode, CommandError> {
    #[cfg(feature = "fleet")]
    if args.is_for_fleet() {
        return super::fleet::spawn_in_fleet(args);
    }
    let state_dir = StateDir::locate()?;
    let Some(ResolvedRun { draft, worktree }) = run::resolve(args)? else {
        return Ok(ExitCode::Success);
    };
    let settings = &draft.config.settings;
    let tmux = settings.tmux.then(|| Tmux {
        socket: settings.tmux_socket.clone(),
    });
    check_tmux(tmux.as_ref())?;
    let placement = Placement {
        background: true,
        tmux: tmux.as_ref().map(|tmux| tmux.socket.clone()),
        worktree,
        hosted: false,
    };
    let PreparedLoop {
        dir,
        locks,
        plan,
        start_mark,
    } = create::create_loop(
        &state_dir,
        args.name.as_deref(),
        draft,
        placement,
        &mut |warning| warn(warning),
    )?;
    // The supervisor acquires the locks itself, because a tmux window is not a child of this
    // process and cannot inherit them.
    drop(locks);
    let launched = launch(&state_dir, &dir, tmux.as_ref(), &[]);
    if let Err(error) = launched {
        // Remove the new loop, unless a supervisor did start and holds its lock.
        let Ok(_lock) = LoopLocks::acquire_own(&dir, &plan) else {
            return Err(error);
        };
        if plan
            .worktree
            .is_none_or(|created| worktree::roll_back(&created, None).is_ok())
        {
            let _ = std::fs::remove_dir_all(dir.path());
        }
        return Err(error);
    }
    drop(start_mark);
    let (name, location) = (dir.name(), location_text(dir.name(), tmux.as_ref()));
    if args.json {
        let window = tmux.as_ref().map(|_| location.trim_start_matches("tmux: "));
        let line = json!({ "name": name, "tmux": window, "directory": dir.path() });
        print_json(&line.to_string())?;
    } else {
        let first = with_limit(1, plan.limits.iterations);
        print_message(&format!(
            "spawned {name} ({location}) [ralph mode: iteration {first}]\n"
        ));
        // Scripts and agents rely on one line.
        if is_terminal() {
            print_message(&format!(
                "watch: ralph attach {name} · ralph logs {name} -f · ralph status {name}\n\
                 steer: ralph say {name} TEXT · ralph pause {name} · ralph set {name} max-iterations=N\n\
                 stop:  ralph stop {name}\n"
            ));
        }
    }
    Ok(ExitCode::Success)
}
