//! `ralph attach`: shows the tmux window of a background loop, or follows its log.

use super::background::configured_tmux;
use super::logs;
use super::open_loop::open;
use crate::cli::LogsArgs;
use crate::engine::{ExitCode, Status};
use crate::lifecycle::enclosing::check_operator;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::tmux::Tmux;
use crate::store::loop_holder;
use crate::ui::adapt;
use crate::ui::print::{note, print_message};
use crate::ui::status::line;
use crate::ui::tty::is_terminal;
use std::io::{ErrorKind, IsTerminal, stdin};
use std::time::Duration;

/// How often to check whether a loop has started.
const START_POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn attach(name: &str) -> Result<ExitCode, CommandError> {
    let mut handle = open(name)?;
    check_operator(&handle.state_dir, &handle.dir)?;
    while handle.status() == Status::Starting {
        std::thread::sleep(START_POLL_INTERVAL);
        handle = open(name)?;
    }
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
    // A loop that was started in the foreground may have moved to the background.
    let holder = loop_holder(&handle.dir);
    if !header.background && !holder.as_ref().is_some_and(|holder| holder.background) {
        return Err(CommandError::usage(
            format!("cannot attach to {name:?}: it runs in the foreground of another terminal"),
            format!("run `ralph logs {name} -f` to follow its output"),
        ));
    }
    // A loop that was resumed with --no-tmux has no window.
    let in_window = holder.is_some_and(|holder| holder.host.is_some());
    let recorded = header.tmux.clone().map(|socket| Tmux { socket });
    let tmux = || recorded.or_else(|| configured_tmux(&handle.view.state.plan));
    let Some(tmux) = in_window.then(tmux).flatten() else {
        note("Ctrl-C ends this view; the loop continues");
        let code = logs::logs(&LogsArgs {
            name: name.to_owned(),
            follow: true,
            iteration: None,
            raw: false,
            all: false,
            since: None,
            json: false,
            fleet: crate::cli::fleet_target::FleetTarget::default(),
        })?;
        return Ok(code);
    };
    if !stdin().is_terminal() || !is_terminal() {
        return Err(CommandError::usage(
            "ralph attach needs a terminal, but its input or output is not one",
            format!("run `ralph logs {name} -f` to follow the output without a terminal"),
        ));
    }
    if tmux.has_window(name).is_ok_and(|found| !found) {
        return Err(CommandError::usage(
            format!("cannot attach to {name:?}: its window is on another tmux server"),
            format!(
                "set TMUX_TMPDIR to the value it had when the loop was started, or follow the output with `ralph logs {name} -f`"
            ),
        ));
    }
    let keys = format!("{} detaches · Ctrl-C goes to the loop", tmux.detach_keys());
    print_message(&format!("{keys}\n"));
    match tmux.attach(name, &adapt(keys)).status() {
        Ok(status) if status.success() => {
            let handle = open(name)?;
            match handle.status() {
                Status::Running => print_message(&format!("{name} is still running\n")),
                _ => print_message(&format!(
                    "{name}: {}\n",
                    line(&handle.view.state, handle.liveness)
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
