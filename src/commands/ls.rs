//! `ralph ls`: lists loops.

use crate::cli::LsArgs;
use crate::engine::{ExitCode, Liveness, Status};
use crate::git::project;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::read_loop;
use crate::lifecycle::live_view::live;
use crate::store::{EndedLoop, LoopDir, LoopView, StateDir};
use crate::ui::age::now_ms;
use crate::ui::loop_table::{LoopRow, table};
use crate::ui::print::{print_json, print_output, print_styled, warn};
use crate::ui::status::object;
use crate::ui::tty;
use std::num::NonZero;
use std::path::{Path, PathBuf};

pub(crate) fn ls(args: &LsArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    let filter = LoopFilter::new(args)?;
    let names = state_dir.loop_names()?;
    if args.names && filter.is_empty() && !args.all {
        for name in names {
            print_output(&format!("{name}\n"))?;
        }
        return Ok(ExitCode::Success);
    }
    let mut dirs: Vec<ListedLoop> = names
        .iter()
        .map(|name| ListedLoop {
            dir: state_dir.loop_dir(name),
            is_archived: false,
        })
        .collect();
    if args.all {
        let archived = state_dir.archived_loops().into_iter();
        dirs.extend(archived.map(|dir| ListedLoop {
            dir,
            is_archived: true,
        }));
    }
    if args.json {
        let objects = map_loops(&dirs, |listed| {
            let object = read_with_warning(&listed.dir, |view, liveness| {
                let (status, repository) =
                    (view.state.status(liveness), view.state.plan.repository());
                filter
                    .contains(status, repository)
                    .then(|| listed.object(view, liveness))
            });
            object.flatten()
        });
        print_json(&format!("[{}]", objects.join(",")))?;
        return Ok(ExitCode::Success);
    }
    let rows = map_loops(&dirs, |listed| {
        let row = listed.row()?;
        filter.contains(row.status, &row.repository).then_some(row)
    });
    if args.names {
        for row in &rows {
            print_output(&format!("{}\n", row.name()))?;
        }
    } else if !rows.is_empty() {
        print_styled(table(rows, tty::width(), tty::use_color(), now_ms()))?;
    } else if names.is_empty() && filter.is_empty() {
        print_output("no loops yet; run `ralph run` to start one\n")?;
    } else {
        print_output("no such loops; `ralph ls` lists all loops\n")?;
    }
    Ok(ExitCode::Success)
}

/// Which loops are listed.
struct LoopFilter {
    states: Vec<Status>,
    /// The top of the user's repository; `None` for loops of all repositories.
    project: Option<PathBuf>,
}

impl LoopFilter {
    fn new(args: &LsArgs) -> Result<Self, CommandError> {
        let parse = |typed: &String| {
            let known = Status::ALL.into_iter();
            let mut known = known.filter(|status| status.as_str() == *typed);
            known.next().ok_or_else(|| {
                let names = Status::ALL.map(Status::as_str).join(", ");
                CommandError::usage(
                    format!("--state {typed:?}: no loop can have this state"),
                    format!("the states are {names}"),
                )
            })
        };
        let here = || {
            let dir = std::env::current_dir();
            dir.map_err(|error| {
                CommandError::broken(format!("cannot read the current directory: {error}"))
            })
        };
        Ok(Self {
            states: args.state.iter().map(parse).collect::<Result<_, _>>()?,
            project: match args.here {
                true => Some(project(&here()?)),
                false => None,
            },
        })
    }

    fn is_empty(&self) -> bool {
        self.states.is_empty() && self.project.is_none()
    }

    fn contains(&self, status: Status, repository: &Path) -> bool {
        let is_here = |top: &PathBuf| *top == project(repository);
        (self.states.is_empty() || self.states.contains(&status))
            && self.project.as_ref().is_none_or(is_here)
    }
}

/// A loop to list.
struct ListedLoop {
    dir: LoopDir,
    is_archived: bool,
}

impl ListedLoop {
    fn row(&self) -> Option<LoopRow> {
        let ended = EndedLoop::read(&self.dir).map(LoopRow::ended);
        let new = |view: &LoopView, liveness| LoopRow::new(&self.dir, view, liveness);
        let row = ended.or_else(|| read_with_warning(&self.dir, new))?;
        Some(match self.is_archived {
            true => row.archived(self.dir.name()),
            false => row,
        })
    }

    fn object(&self, view: &LoopView, liveness: Liveness) -> String {
        let directory = self.dir.path().display().to_string();
        let mut object = object(view, liveness, &directory);
        if self.is_archived {
            object["archived"] = true.into();
        }
        object.to_string()
    }
}

/// The minimum number of loops per thread that justifies another thread.
const MIN_PER_THREAD: usize = 64;

/// Reads a loop and applies `f` to it; warns if it cannot be read.
fn read_with_warning<T>(dir: &LoopDir, f: impl Fn(&LoopView, Liveness) -> T) -> Option<T> {
    read_loop(dir)
        .map(|(view, liveness)| f(&live(dir, view, liveness), liveness))
        .map_err(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}"));
            warn(format!(
                "{}: {error}{}",
                dir.name(),
                hint.unwrap_or_default()
            ));
        })
        .ok()
}

/// Applies `read` to every loop, in their order, and leaves out the loops for which it returns
/// `None`. Keeps only the results, because the views of many loops would take much memory.
fn map_loops<T: Send>(
    loops: &[ListedLoop],
    read: impl Fn(&ListedLoop) -> Option<T> + Sync,
) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let chunk_len = loops.len().div_ceil(threads).max(MIN_PER_THREAD);
    if loops.len() <= chunk_len {
        return loops.iter().filter_map(&read).collect();
    }
    std::thread::scope(|scope| {
        let read = &read;
        let handles = loops
            .chunks(chunk_len)
            .map(|chunk| scope.spawn(move || chunk.iter().filter_map(read).collect::<Vec<_>>()));
        let handles: Vec<_> = handles.collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().unwrap_or_default())
            .collect()
    })
}
