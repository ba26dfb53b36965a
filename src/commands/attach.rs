//! `ralph attach`: look at a loop in the background as it works.

use super::logs;
use crate::cli::LogsWords;
use crate::engine::Status;
use crate::lifecycle::failure::Failure;
use crate::lifecycle::handle::Visit;
use crate::lifecycle::tmux::Tmux;
use crate::ui::say;
use crate::ui::status::line;
use std::io::{ErrorKind, IsTerminal, stdin, stdout};

pub(crate) fn attach(name: &str) -> Result<i32, Failure> {
    let visit = Visit::to(name)?;
    let header = &visit.view.header;
    // One that has ended may still be saying so.
    if visit.status() != Status::Running {
        return Err(Failure::usage(
            format!("{name:?} is not running: it is {}", visit.status().word()),
            format!("ralph logs {name} shows what it did"),
        ));
    }
    if !header.background {
        return Err(Failure::usage(
            format!("{name:?} runs in a terminal of its own"),
            format!("ralph logs {name} -f follows it"),
        ));
    }
    let Some(socket) = &header.tmux else {
        return logs::logs(&LogsWords {
            name: name.to_owned(),
            follow: true,
            iteration: None,
            raw: false,
        });
    };
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::usage(
            "attach needs a terminal",
            format!("ralph logs {name} -f follows it without one"),
        ));
    }
    let status = Tmux {
        socket: socket.clone(),
    }
    .attach(name)
    .status();
    match status {
        Ok(status) if status.success() => {
            let visit = Visit::to(name)?;
            match visit.status() {
                Status::Running => say(&format!("{name} goes on\n")),
                _ => say(&format!(
                    "{name}: {}\n",
                    line(&visit.view.state, visit.held)
                )),
            }
            Ok(0)
        }
        Ok(_) => Err(Failure::broken(format!("tmux could not show {name:?}"))
            .with_hint(format!("ralph logs {name} -f follows it"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::usage(
            "tmux is not installed",
            format!("ralph logs {name} -f follows it without"),
        )),
        Err(error) => Err(Failure::broken(format!("cannot run tmux: {error}"))
            .with_hint(format!("ralph logs {name} -f follows it"))),
    }
}
