//! `ralph wait`: until loops are over or paused, and out with their exit code.

use crate::cli::WaitWords;
use crate::engine::format::duration;
use crate::engine::{Outcome, State, Status};
use crate::lifecycle::failure::Failure;
use crate::lifecycle::handle::Visit;
use crate::lifecycle::watch::{STACK, await_over};
use crate::ui::say;
use crate::ui::status::line;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

pub(crate) fn wait(words: &WaitWords) -> Result<i32, Failure> {
    let mut names = words.names.clone();
    names.sort_unstable();
    names.dedup();
    let deadline = words
        .timeout
        .map(|span| Instant::now() + Duration::from_millis(span.0));
    let (tell, told) = channel();
    // All are found before any is waited for: a wrong name is an error at once.
    let visits = names
        .iter()
        .map(|name| Visit::as_outsider(name))
        .collect::<Result<Vec<_>, _>>()?;
    for visit in &visits {
        watch(visit, &tell)?;
    }
    let mut worst = 0;
    while !names.is_empty() {
        let heard = match deadline {
            Some(at) => told.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Ok(name) = heard else {
            let (time, left) = (words.timeout.map_or(0, |span| span.0), names.join(", "));
            return Err(
                Failure::broken(format!("not over after {}: {left}", duration(time)))
                    .with_hint(format!("ralph status {} says where it stands", names[0])),
            );
        };
        names.retain(|other| *other != name);
        let before = visits
            .iter()
            .find(|visit| visit.dir.name() == name)
            .expect("it was visited");
        worst = worse(worst, how_it_ended(before)?);
    }
    Ok(worst)
}

/// Says a loop's name as soon as nobody has it under way: then nothing of it is alive, either.
fn watch(visit: &Visit, tell: &Sender<String>) -> Result<(), Failure> {
    let (dir, name, tell) = (visit.dir.clone(), visit.dir.name().to_owned(), tell.clone());
    let sleep = move || {
        await_over(&dir);
        let _ = tell.send(name);
    };
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(sleep)
        .map(drop)
        .map_err(Failure::broken)
}

fn how_it_ended(before: &Visit) -> Result<i32, Failure> {
    let name = before.dir.name();
    let now = Visit::in_home(before.home.clone(), name)?;
    if now.view.header.id != before.view.header.id {
        return Err(Failure::broken(format!(
            "the name {name:?} was used again at once for another loop"
        ))
        .with_hint(format!(
            "how it ended is in the archive in {}",
            before.home.root().display()
        )));
    }
    let state = &now.view.state;
    say(&format!("{name}: {}\n", line(state, false)));
    Ok(exit_code(state))
}

fn exit_code(state: &State) -> i32 {
    match state.status(false) {
        Status::Paused => 3,
        _ => state.outcome().map_or(1, Outcome::exit_code),
    }
}

/// A failure is worse than a stop, which is worse than a loop that can go on.
fn worse(one: i32, other: i32) -> i32 {
    let rank = |code: i32| [0, 3, 130, 1].iter().position(|known| *known == code);
    if rank(other) > rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::worse;

    #[test]
    fn the_worst_of_several_endings_is_told() {
        for (one, other, worst) in [
            (0, 0, 0),
            (0, 3, 3),
            (3, 130, 130),
            (130, 1, 1),
            (1, 0, 1),
            (3, 1, 1),
        ] {
            assert_eq!((worse(one, other), worse(other, one)), (worst, worst));
        }
    }
}
