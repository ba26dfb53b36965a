//! `ralph ls`: lists all loops.

use crate::cli::LsArgs;
use crate::engine::{ExitCode, Liveness};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::read_loop;
use crate::lifecycle::live_view::live;
use crate::store::{EndedLoop, LoopView, StateDir};
use crate::ui::print::{print_json, print_output, print_text, warn};
use crate::ui::status::{LoopRow, object, table};
use crate::ui::tty;
use std::num::NonZero;

pub(crate) fn ls(args: &LsArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    let names = state_dir.loop_names()?;
    if args.names {
        for name in names {
            print_output(&format!("{name}\n"))?;
        }
        return Ok(ExitCode::Success);
    }
    if args.json {
        let object = |view: &LoopView, liveness| {
            let directory = state_dir
                .loop_dir(&view.header.name)
                .path()
                .display()
                .to_string();
            object(view, liveness, &directory).to_string()
        };
        let objects = map_loops(&names, |name| read_with_warning(&state_dir, name, object));
        print_json(&format!("[{}]", objects.join(",")))?;
        return Ok(ExitCode::Success);
    }
    let row = |name: &String| {
        let ended = EndedLoop::read(&state_dir.loop_dir(name)).map(LoopRow::ended);
        ended.or_else(|| read_with_warning(&state_dir, name, LoopRow::new))
    };
    let rows = map_loops(&names, row);
    if rows.is_empty() {
        print_output("no loops yet; run `ralph run` to start one\n")?;
    } else {
        print_text(&table(rows, tty::width()))?;
    }
    Ok(ExitCode::Success)
}

/// The minimum number of loops per thread that justifies another thread.
const MIN_PER_THREAD: usize = 64;

/// Reads a loop and applies `f` to it; warns if it cannot be read.
fn read_with_warning<T>(
    state_dir: &StateDir,
    name: &str,
    f: impl Fn(&LoopView, Liveness) -> T,
) -> Option<T> {
    let dir = state_dir.loop_dir(name);
    read_loop(&dir)
        .map(|(view, liveness)| f(&live(&dir, view, liveness), liveness))
        .map_err(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}"));
            warn(format!("{name}: {error}{}", hint.unwrap_or_default()));
        })
        .ok()
}

/// Applies `read` to every name, in their order, and leaves out the loops for which it returns
/// `None`. Keeps only the results, because the views of many loops would take much memory.
fn map_loops<T: Send>(names: &[String], read: impl Fn(&String) -> Option<T> + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let chunk_len = names.len().div_ceil(threads).max(MIN_PER_THREAD);
    if names.len() <= chunk_len {
        return names.iter().filter_map(&read).collect();
    }
    std::thread::scope(|scope| {
        let read = &read;
        let handles = names
            .chunks(chunk_len)
            .map(|chunk| scope.spawn(move || chunk.iter().filter_map(read).collect::<Vec<_>>()));
        let handles: Vec<_> = handles.collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().unwrap_or_default())
            .collect()
    })
}
