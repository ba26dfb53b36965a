//! `ralph spawn`: a new loop in the background.

use super::run;
use super::run::Intent;
use crate::cli::RunWords;
use crate::engine::format::of_limit;
use crate::git::worktree;
use crate::lifecycle::create::{self, Place, Prepared};
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::launch::{launch, place, usable};
use crate::lifecycle::locks::lock_away;
use crate::lifecycle::tmux::Tmux;
use crate::store::Home;
use crate::ui::say;
use serde_json::json;

pub(crate) fn spawn(words: &RunWords) -> Result<i32, Failure> {
    let home = Home::locate()?;
    let Some(Intent { plan, all, apart }) = run::intent(words)? else {
        return Ok(0);
    };
    let tmux = all.tmux.then(|| Tmux {
        socket: all.tmux_socket.clone(),
    });
    usable(
        tmux.as_ref(),
        ", or add --no-tmux for a plain background process",
    )?;
    if apart.is_none() {
        create::sweep_before(&home, &plan.workspace)?;
    }
    let there = Place {
        background: true,
        tmux: tmux.as_ref().map(|tmux| tmux.socket.clone()),
        apart,
        hosted: false,
    };
    let Prepared {
        dir,
        locks,
        plan,
        notes,
    } = create::prepare(&home, words.name.as_deref(), plan, there)?;
    notes.iter().for_each(warn);
    // The supervisor takes them anew: a window is no child of this process.
    drop(locks);
    if let Err(failure) = launch(&home, &dir, tmux.as_ref()) {
        // Nothing has happened in it that could be lost, unless somebody has begun it all the same.
        let Ok(_lock) = lock_away(&dir) else {
            return Err(failure);
        };
        if plan
            .worktree
            .is_none_or(|made| worktree::undo(&made).is_ok())
        {
            let _ = std::fs::remove_dir_all(dir.path());
        }
        return Err(failure);
    }
    let (name, place) = (dir.name(), place(dir.name(), tmux.as_ref()));
    if words.json {
        let window = tmux.as_ref().map(|_| place.trim_start_matches("tmux: "));
        say(&format!(
            "{}\n",
            json!({ "name": name, "tmux": window, "directory": dir.path() })
        ));
    } else {
        let first = of_limit(1, plan.limits.iterations);
        say(&format!(
            "spawned {name} ({place}) [ralph mode: iteration {first}]\n"
        ));
    }
    Ok(0)
}
