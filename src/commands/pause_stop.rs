//! `ralph pause` and `ralph stop`: a line in the inbox, and a word on what comes of it.

use super::supervise::run_here;
use crate::cli::OutputWords;
use crate::engine::event::Wish;
use crate::engine::{Phase, Status};
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::handle::Visit;
use crate::lifecycle::locks::Locks;
use crate::lifecycle::session::attend;
use crate::lifecycle::watch::Ear;
use crate::runner::session::Client;
use crate::store::{Message, inbox, view_with_inbox};
use crate::ui::say;
use std::time::Duration;

pub(crate) fn pause(name: &str) -> Result<i32, Failure> {
    let visit = Visit::as_operator(name)?;
    match visit.status() {
        Status::Running if visit.view.state.wish == Wish::Go => {
            inbox::append(&visit.dir, &Message::Asked { wish: Wish::Pause })?;
            let busy = !matches!(
                visit.view.state.phase,
                Phase::Resting { .. } | Phase::Waiting
            );
            let first = if busy {
                "the running agent finishes first\n"
            } else {
                ""
            };
            say(&format!("paused ralph loop for {name}\n{first}"));
            Ok(0)
        }
        Status::Running | Status::Paused => {
            warn(format!("{name:?} is already paused or stopping"));
            Ok(0)
        }
        status => Err(Failure::usage(
            format!("{name:?} does not run: it is {}", status.word()),
            format!("ralph status {name} says more"),
        )),
    }
}

pub(crate) fn stop(name: &str) -> Result<i32, Failure> {
    let visit = Visit::as_operator(name)?;
    match visit.status() {
        // It is over at once; the client hears of it when its agent stops.
        Status::Running if visit.is_in_session() => {
            inbox::append(
                &visit.dir,
                &Message::Asked {
                    wish: Wish::StopNow,
                },
            )?;
            let locks = Locks::of(&visit.dir, &visit.view.state.plan)?;
            attend(&visit.dir, &locks, Client::default(), vec![])?;
        }
        Status::Running => {
            let ear = Ear::on(&visit.dir).map_err(Failure::broken)?;
            inbox::append(
                &visit.dir,
                &Message::Asked {
                    wish: Wish::StopNow,
                },
            )?;
            wait_until_gone(&visit, &ear)?;
        }
        Status::Paused | Status::Crashed => {
            inbox::append(
                &visit.dir,
                &Message::Asked {
                    wish: Wish::StopNow,
                },
            )?;
            let _locks = Locks::take(&visit.home, &visit.dir, &visit.view.state.plan)?;
            run_here(
                &visit.dir,
                OutputWords {
                    no_stream: true,
                    ..OutputWords::default()
                },
            )?;
        }
        status => {
            warn(format!("{name:?} does not run: it is {}", status.word()));
            return Ok(0);
        }
    }
    say(&format!("stopped ralph loop for {name}\n"));
    Ok(0)
}

/// The agent has its grace, and then a survivor its time; a little more, and something is wrong.
fn wait_until_gone(visit: &Visit, ear: &Ear) -> Result<(), Failure> {
    let grace = &visit.view.state.plan.grace;
    let patience =
        Duration::from_millis(grace.term_ms + grace.survivor_ms) + Duration::from_secs(10);
    if !ear.wait_for_end(patience) {
        return Err(Failure::broken(format!(
            "{:?} has not stopped yet",
            visit.dir.name()
        )));
    }
    let state = view_with_inbox(&visit.dir)?.state;
    match state.status(false) {
        Status::Crashed => Err(Failure::broken("its runner went away without an ending")),
        _ => Ok(()),
    }
}
