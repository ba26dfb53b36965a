//! `ralph attach`: shows the tmux window of a background loop, or follows its log.

use super::logs;
use super::open_loop::open;
use crate::cli::LogsArgs;
use crate::engine::{ExitCode, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::tmux::Tmux;
use crate::ui::print::print_message;
use crate::ui::status::line;
use std::io::{ErrorKind, IsTerminal, stdin, stdout};

pub(crate) fn attach(name: &str) -> Result<ExitCode, CommandError> {
    let handle = open(name)?;
    let header = &handle.view.header;
    // Check the status, not the lock: a loop that has ended may still be printing its summary.
    if handle.status() != Status::Running {
        return Err(CommandError::usage(
            format!(
                "cannot attach to {name:?}: it is not running, its status is {}",
                handle.status().as_str()
            ),
            format!("run `ralph logs {name}` to see what it did"),
        ));
    }
    if !header.background {
        return Err(CommandError::usage(
            format!("cannot attach to {name:?}: it runs in the foreground of another terminal"),
            format!("run `ralph logs {name} -f` to follow its output"),
        ));
    }
    let Some(socket) = &header.tmux else {
        return logs::logs(&LogsArgs {
            name: name.to_owned(),
            follow: true,
            iteration: None,
            raw: false,
        });
    };
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(CommandError::usage(
            "ralph attach needs a terminal, but its input or output is not one",
            format!("run `ralph logs {name} -f` to follow the output without a terminal"),
        ));
    }
    let status = Tmux {
        socket: socket.clone(),
    }
    .attach(name)
    .status();
    match status {
        Ok(status) if status.success() => {
            let handle = open(name)?;
            match handle.status() {
                Status::Running => print_message(&format!("{name} is still running\n")),
                _ => print_message(&format!(
                    "{name}: {}\n",
                    line(&handle.view.state, handle.held)
                )),
            }
            Ok(ExitCode::Success)
        }
        Ok(_) => Err(CommandError::broken(format!(
            "cannot attach to {name:?}: tmux could not show its window"
        ))
        .with_hint(format!("run `ralph logs {name} -f` to follow its output"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(CommandError::usage(
            format!("cannot attach to {name:?}: tmux is not installed"),
            format!("install tmux, or run `ralph logs {name} -f` to follow the output"),
        )),
        Err(error) => Err(CommandError::broken(format!("cannot run tmux: {error}"))
            .with_hint(format!("run `ralph logs {name} -f` to follow its output"))),
    }
}
