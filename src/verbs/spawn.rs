//! `ralph spawn`: a new loop in the background.

use super::background::{launch, place, usable};
use super::failure::{Failure, warn};
use super::run::{self, Intent, Place};
use crate::cli::RunWords;
use crate::drive::tmux::Tmux;
use crate::engine::words::of_limit;
use crate::show::say;
use crate::store::Home;
use serde_json::json;

pub(super) fn spawn(words: &RunWords) -> Result<i32, Failure> {
    let home = Home::locate()?;
    let Some(Intent { plan, all }) = run::intent(words)? else { return Ok(0) };
    let tmux = all.tmux.then(|| Tmux { socket: all.tmux_socket.clone() });
    usable(tmux.as_ref())?;
    run::sweep_before(&home, &plan.workspace)?;
    let there = Place { background: true, tmux: tmux.as_ref().map(|tmux| tmux.socket.clone()) };
    let (dir, locks, note) = run::prepare(&home, words.name.as_deref(), &plan, there)?;
    if let Some(note) = note {
        warn(note);
    }
    // The supervisor takes them anew: a window is no child of this process.
    drop(locks);
    if let Err(failure) = launch(&home, &dir, tmux.as_ref()) {
        // Nothing has happened in it that could be lost.
        let _ = std::fs::remove_dir_all(dir.path());
        return Err(failure);
    }
    let (name, place) = (dir.name(), place(dir.name(), tmux.as_ref()));
    if words.json {
        let window = tmux.as_ref().map(|_| place.trim_start_matches("tmux: "));
        say(&format!("{}\n", json!({ "name": name, "tmux": window, "directory": dir.path() })));
    } else {
        let first = of_limit(1, plan.limits.iterations);
        say(&format!("spawned {name} ({place}) [ralph mode: iteration {first}]\n"));
    }
    Ok(0)
}
