//! `ralph logs`: prints what agents printed, and with several iterations what ralph did in between.

mod printer;
mod stream;

use super::open_loop::open_to_read;
use crate::cli::LogsArgs;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::lifecycle::watcher::LoopWatcher;
use crate::store::cache;
use crate::ui::age::now_ms;
use printer::{LogPrinter, OutputStyle};
use std::time::Duration;
use stream::LogStream;

/// The interval at which the log is read even if no file event arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn logs(args: &LogsArgs) -> Result<ExitCode, CommandError> {
    let handle = open_to_read(&args.name)?;
    let since = args.since.map(|since| since.0 as i64);
    let style = OutputStyle {
        raw: args.raw,
        json: args.json,
        since_ms: since.map(|since| now_ms().saturating_sub(since)),
    };
    let mut watcher = args
        .follow
        .then(|| LoopWatcher::new(&handle.dir))
        .transpose()
        .map_err(CommandError::broken)?;
    if args.all || since.is_some() || (args.follow && args.iteration.is_none()) {
        let newest = handle.view.state.iteration;
        let first = if args.all || since.is_some() {
            0
        } else {
            newest
        };
        return follow_all(LogStream::new(&handle, first, style), &handle, watcher);
    }
    let iteration = find_iteration(args, &handle)?;
    let mut printer = LogPrinter::new(&handle.view, style, iteration, handle.is_live());
    loop {
        // Check before reading, so that output printed just before the end is not missed.
        let is_over = watcher.as_mut().is_none_or(LoopWatcher::is_over);
        if let Some(watcher) = &mut watcher {
            // Watch before reading, so that later changes are noticed.
            watcher.watch(&[
                handle.dir.journal(),
                handle.dir.output_log(iteration),
                handle.dir.activity(iteration),
            ]);
        }
        let view = args.follow.then(|| cache::read(&handle.dir)).transpose()?;
        let newest = view.map_or(iteration, |view| view.state.iteration);
        if printer.copy(&handle.dir, iteration).is_err() {
            return Ok(ExitCode::Success);
        }
        if is_over || newest > iteration {
            let _ = printer.close();
            return Ok(ExitCode::Success);
        }
        if let Some(watcher) = &mut watcher {
            watcher.wait(POLL_INTERVAL);
        }
    }
}

/// Prints several iterations and what happened in between, until the loop is over. Without a
/// watcher, prints what there is.
fn follow_all(
    mut stream: LogStream<'_>,
    handle: &LoopHandle,
    mut watcher: Option<LoopWatcher>,
) -> Result<ExitCode, CommandError> {
    loop {
        // Check before reading, so that output printed just before the end is not missed.
        let is_over = watcher.as_mut().is_none_or(LoopWatcher::is_over);
        if let Some(watcher) = &mut watcher {
            // Watch before reading, so that later changes are noticed.
            let iteration = stream.iteration();
            watcher.watch(&[
                handle.dir.journal(),
                handle.dir.output_log(iteration),
                handle.dir.activity(iteration),
            ]);
        }
        // The pipe's reader needs no more output.
        let Ok(is_newest) = stream.advance(!is_over)? else {
            return Ok(ExitCode::Success);
        };
        if is_over {
            let _ = stream.finish(watcher.is_some());
            return Ok(ExitCode::Success);
        }
        if is_newest && let Some(watcher) = &mut watcher {
            watcher.wait(POLL_INTERVAL);
        }
    }
}

/// Returns the iteration to print.
fn find_iteration(args: &LogsArgs, handle: &LoopHandle) -> Result<u32, CommandError> {
    let newest = handle.view.state.iteration;
    let iteration = args.iteration.unwrap_or(newest);
    if args
        .iteration
        .is_none_or(|wanted| (1..=newest).contains(&wanted))
    {
        return Ok(iteration);
    }
    let existing = match newest {
        0 => "no iteration yet".to_owned(),
        _ => format!("only iterations 1 to {newest}"),
    };
    Err(CommandError::usage(
        format!("--iteration {iteration}: {:?} has {existing}", args.name),
        "leave out --iteration to print the newest one",
    ))
}
