//! Runs a loop under a warden process, shows it on the console, and prints the summary at the end.

use super::background::continue_in_background;
use super::say::{check_reads_messages, message};
use crate::agent::task_dir::TaskDir;
use crate::cli::OutputArgs;
use crate::engine::event::Request;
use crate::engine::format::{plural, process_count};
use crate::engine::{Act, Event, ExitCode, Outcome, Plan, State, Status};
use crate::git;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::{exemptions, read_loop};
use crate::lifecycle::locks::LoopLocks;
use crate::os::regular_file;
use crate::process::warden;
use crate::runner::notify::Notification;
use crate::runner::reactor::Reactor;
use crate::runner::{AgentHost, Observer, Runner, RunnerError, RunnerExit};
use crate::store::derived_files::DerivedFiles;
use crate::store::{
    InboxMessage, Journal, JournalHeader, JournalLine, LoopDir, LoopView, StateDir, inbox,
};
use crate::ui::console::{Console, ConsoleMode};
use crate::ui::key_input::KeyRequest;
use crate::ui::print::{print_message, print_styled, report_error, warn};
use crate::ui::tty::{self, is_terminal, use_color};
use crate::ui::{notification, status, summary};
use serde_json::Value;
use std::io::{self, IsTerminal, Read, Write, stdin};
use std::time::Duration;

/// Runs a loop in a supervisor process, under this process as its warden, and returns the exit
/// code. Releases the locks once no process of the loop is left.
pub(crate) fn supervise(
    dir: &LoopDir,
    locks: LoopLocks,
    plan: &Plan,
    output: OutputArgs,
) -> Result<ExitCode, CommandError> {
    let grace = Duration::from_millis(plan.grace.term_ms);
    let (mut moving, mut move_request) = io::pipe().map_err(CommandError::broken)?;
    let exit = warden::run_guarded(
        || {
            let mut moves = false;
            let code = run(dir, output, &mut moves).unwrap_or_else(report_error);
            if moves {
                let _ = move_request.write_all(b"d");
            }
            code
        },
        grace,
        &exemptions(&StateDir::containing(dir)),
    )
    .map_err(CommandError::broken)?;
    // Release the locks only now that the warden has killed every process of the loop. Other
    // processes rely on a free lock to mean that none is left.
    drop(locks);
    drop(move_request);
    match exit {
        warden::SupervisorExit::Exited(_) if moving.read(&mut [0]).is_ok_and(|count| count > 0) => {
            continue_in_background(dir)
        }
        warden::SupervisorExit::Exited(code) => Ok(code),
        warden::SupervisorExit::Killed {
            signal,
            swept,
            survivors,
        } => {
            if is_terminal() {
                // Move below the killed supervisor's live line.
                print_message("\n");
            }
            let mut messages = vec![format!("the supervisor was killed by signal {signal}")];
            if swept > 0 {
                messages.push(format!(
                    "killed {} that it left behind",
                    process_count(swept)
                ));
            }
            if !survivors.is_empty() {
                messages.push(format!(
                    "these processes could not be killed and are still running: {survivors:?}"
                ));
            }
            let error = CommandError::broken(messages.join("; ")).with_hint(format!(
                "run `ralph resume {}` to continue the loop",
                dir.name()
            ));
            report_error(error);
            Ok(ExitCode::from_signal(signal))
        }
    }
}

/// Runs a loop in this process and returns the exit code.
pub(crate) fn run_in_process(dir: &LoopDir, output: OutputArgs) -> Result<ExitCode, CommandError> {
    run(dir, output, &mut false)
}

/// Like [`run_in_process`]. Sets `moves` if the loop has paused to continue in the background.
fn run(dir: &LoopDir, output: OutputArgs, moves: &mut bool) -> Result<ExitCode, CommandError> {
    let opened = Journal::open(dir)?;
    let mode = match output {
        OutputArgs { json: true, .. } => ConsoleMode::Json,
        OutputArgs { quiet: true, .. } => ConsoleMode::Quiet,
        OutputArgs { no_stream, raw, .. } => ConsoleMode::Full {
            stream: !no_stream,
            raw,
        },
    };
    let task = TaskDir::new(&opened.state.plan.workspace, &opened.header.name);
    let files = DerivedFiles::new(dir, task.path(), &opened.state);
    let console = Console::new(dir, mode);
    let console = if output.in_window {
        console.in_window()
    } else {
        console
    };
    let mut observer = SupervisorObserver {
        files,
        console,
        finished: None,
        dir: dir.clone(),
    };
    let mut reactor =
        Reactor::open(exemptions(&StateDir::containing(dir))).map_err(CommandError::broken)?;
    if output.in_window {
        reactor.expect_wakeups();
    }
    if observer.console.can_mirror() {
        reactor.hand_over_terminal();
    }
    if observer.console.wants_keys() && stdin().is_terminal() {
        reactor.read_keys();
    }
    let result = Runner::open(
        dir.clone(),
        opened,
        reactor,
        AgentHost::Process,
        &mut observer,
    )
    .map(|runner| runner.notify_rests(notification::rest_payload))
    .map(Runner::run);
    observer.console.close();
    let (exit, header, state) = result.map_err(|error| runner_error(dir, error))?;
    let exit = match exit {
        Ok(exit) => exit,
        Err(error) => {
            let error = runner_error(dir, error);
            let payload = |directory: &str| {
                notification::error_payload(&header, &state, error.message(), directory)
            };
            run_notify_command(dir, &header, &state, payload);
            return Err(error);
        }
    };
    if exit == RunnerExit::Paused && observer.console.moves_to_background() {
        *moves = true;
        return Ok(exit.exit_code());
    }
    // If the loop's directory was deleted or moved, no command finds the loop.
    let is_found = dir.journal().exists();
    print_summary(
        dir,
        &header,
        &state,
        mode,
        !output.hide_next_step && is_found,
    );
    if let RunnerExit::Ended(Outcome::Fatal { detail, .. }) = &exit {
        let name = dir.name();
        let hint = if is_found {
            format!("fix the problem, then run `ralph resume {name}`")
        } else {
            format!("move it back and run `ralph resume {name}`, or start a new loop")
        };
        report_error(CommandError::broken(detail).with_hint(hint));
    }
    if exit != RunnerExit::HungUp {
        let finished = observer.finished.as_ref();
        run_notify_command(dir, &header, &state, |directory| {
            notification::payload(&header, &state, finished, directory)
        });
    }
    Ok(exit.exit_code())
}

fn runner_error(dir: &LoopDir, error: RunnerError) -> CommandError {
    let is_disk_full = matches!(&error, RunnerError::Store(error) if error.is_disk_full());
    let error = CommandError::from(error);
    if is_disk_full {
        error.with_hint(format!(
            "free some disk space, then run `ralph resume {}`",
            dir.name()
        ))
    } else {
        error
    }
}

/// Runs the `--notify` command. If it fails, prints a warning. `payload` gets the path of the loop's
/// directory.
fn run_notify_command(
    dir: &LoopDir,
    header: &JournalHeader,
    state: &State,
    payload: impl FnOnce(&str) -> Value,
) {
    if state.plan.notify.is_none() {
        return;
    }
    let payload = payload(&dir.path().display().to_string());
    let notification = Notification {
        dir,
        header,
        state,
        payload: &payload,
    };
    if let Some(problem) = notification.run(exemptions(&StateDir::containing(dir))) {
        warn(problem);
    }
}

fn print_summary(
    dir: &LoopDir,
    header: &JournalHeader,
    state: &State,
    mode: ConsoleMode,
    show_next_step: bool,
) {
    match mode {
        ConsoleMode::Json => {}
        ConsoleMode::Quiet => {
            print_message(&summary::result(
                &header.name,
                state,
                &failed_children(dir, header, state),
            ));
        }
        ConsoleMode::Full { .. } => {
            let children = failed_children(dir, header, state);
            let _ = print_styled(summary::text(
                header,
                state,
                &describe_changes(dir),
                &children,
                show_next_step,
                use_color(),
                tty::width(),
            ));
        }
    }
}

/// Returns a description of each child loop that failed, crashed or is blocked. Empty until the
/// loop itself has ended.
fn failed_children(dir: &LoopDir, header: &JournalHeader, state: &State) -> Vec<String> {
    if state.outcome().is_none() {
        return Vec::new();
    }
    let children = StateDir::containing(dir)
        .children(&header.name, header.created_ms)
        .into_iter();
    children
        .filter_map(|(dir, _)| {
            let (LoopView { state, .. }, liveness) = read_loop(&dir).ok()?;
            let has_failed = matches!(
                state.status(liveness),
                Status::Failed | Status::Crashed | Status::Blocked
            );
            has_failed.then(|| format!("{} {}", dir.name(), status::line(&state, liveness)))
        })
        .collect()
}

/// Describes the changes in the workspace since the loop started. Empty if the state at the start
/// was not recorded.
fn describe_changes(dir: &LoopDir) -> String {
    let base = regular_file::read_text(&dir.diff_base(), false).ok();
    let Some(base) = base.and_then(|text| serde_json::from_str::<git::DiffBase>(&text).ok()) else {
        return String::new();
    };
    match base.stat(&dir.git_scratch()) {
        Ok(changes) if changes.files == 0 => "nothing".into(),
        Ok(changes) => {
            let at_least = if changes.at_least { "at least " } else { "" };
            let files = plural(u64::from(changes.files), "file");
            let shown = 3.min(changes.paths.len());
            let ellipsis = if changes.files as usize > shown {
                ", …"
            } else {
                ""
            };
            let paths = changes.paths[..shown].join(", ");
            let lines = format!(" +{} −{}", changes.insertions, changes.deletions);
            let lines = match changes.uncounted {
                0 => lines,
                count if count == changes.files => {
                    " that git did not track at the start, lines not counted".into()
                }
                count => format!("{lines} (lines of {count} untracked at the start not counted)"),
            };
            format!("{at_least}{files}{lines}: {paths}{ellipsis}")
        }
        Err(error) => format!("unknown: {error}"),
    }
}

/// Passes events to the derived files and the console.
struct SupervisorObserver {
    files: DerivedFiles,
    console: Console,
    /// The journal line that ended the loop. `None` until then.
    finished: Option<JournalLine>,
    dir: LoopDir,
}

impl SupervisorObserver {
    /// Sends the request of a key to the loop's inbox, as a command would.
    fn send(&mut self, request: KeyRequest, state: &State) -> Result<(), CommandError> {
        let asked = |request| InboxMessage::Asked { request };
        let message = match request {
            KeyRequest::Pause | KeyRequest::MoveToBackground => asked(Request::Pause),
            KeyRequest::Stop => asked(Request::Stop),
            KeyRequest::TakeBack => asked(Request::Go),
            KeyRequest::Say(text) => {
                check_reads_messages(self.dir.name(), state)?;
                message(&text)
            }
        };
        inbox::append(&self.dir, &message)?;
        Ok(())
    }
}

impl Observer for SupervisorObserver {
    fn event(&mut self, line: &JournalLine, state: &State) {
        if matches!(line.event, Event::Finished { .. }) {
            self.finished = Some(line.clone());
        }
        self.files.record(line, state);
        self.console.event(line, state);
    }

    fn act(&mut self, act: &Act<'_>) {
        self.console.act(act);
    }

    fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration> {
        self.console.tick(state, silent_for)
    }

    fn warn(&mut self, message: &str) {
        self.console.warn(message);
    }

    fn keys_available(&mut self, available: bool) {
        self.console.set_keys_available(available);
    }

    fn keys(&mut self, keys: &[u8], state: &State) {
        for request in self.console.keys(keys, state) {
            if let Err(error) = self.send(request, state) {
                self.console.warn(error.message());
            }
        }
    }
}
