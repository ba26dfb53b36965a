//! `ralph diff`: shows what changed between two checkpoints of a loop.

use super::open_loop::open_to_read;
use crate::cli::DiffArgs;
use crate::engine::{ExitCode, State};
use crate::git::checkpoint::{Checkpoint, Checkpoints, UNDO};
use crate::git::path_name;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::ui::diff_text::patch;
use crate::ui::print::{note, print_raw, print_styled};
use crate::ui::tty::{is_terminal, use_color, width};
use std::fs::File;
use std::io::Read as _;

/// The width of `--stat` if the output is not a terminal.
const COLUMNS: usize = 80;

pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode, CommandError> {
    let (from, to) = parse_range(args)?;
    let handle = open_to_read(&args.name)?;
    let checkpoints = LoopCheckpoints::find(&handle)?;
    let from = checkpoints.get(from.unwrap_or("0"))?;
    let to = match to {
        Some(to) => checkpoints.get(to)?,
        None => checkpoints.newest()?,
    };
    let columns = args.stat.then(|| width().unwrap_or(COLUMNS));
    let text = checkpoints.all.diff(&from.tree, &to.tree, columns);
    print(text.map_err(CommandError::broken)?)?;
    for (path, why) in from.skipped.iter().chain(&to.skipped) {
        note(format!(
            "not compared: {} ({})",
            path_name(path),
            why.as_str()
        ));
    }
    Ok(ExitCode::Success)
}

/// Prints a patch, which may be long, or its statistics.
fn print(mut text: File) -> Result<(), CommandError> {
    let cannot_read = |error| CommandError::broken(format!("cannot read from git: {error}"));
    if is_terminal() {
        let mut bytes = Vec::new();
        text.read_to_end(&mut bytes).map_err(cannot_read)?;
        return print_styled(patch(&String::from_utf8_lossy(&bytes), use_color()));
    }
    let mut buffer = vec![0; 64 << 10];
    loop {
        match text.read(&mut buffer).map_err(cannot_read)? {
            0 => return Ok(()),
            count => print_raw(&buffer[..count])?,
        }
    }
}

/// Splits `A..B`. Either side may be missing.
fn parse_range(args: &DiffArgs) -> Result<(Option<&str>, Option<&str>), CommandError> {
    let Some(range) = args.range.as_deref() else {
        return Ok((None, None));
    };
    let side = |side| Some(side).filter(|side: &&str| !side.is_empty());
    if let Some((from, to)) = range.split_once("..")
        && !to.starts_with('.')
    {
        return Ok((side(from), side(to)));
    }
    let hint = match range.parse::<u32>() {
        Ok(number @ 1..) => format!(
            "`ralph diff {name} {}..{number}` shows what iteration {number} changed, `ralph diff {name} {number}..` what changed since",
            number - 1,
            name = args.name
        ),
        _ => {
            "write the numbers of two checkpoints, such as 0..3; 3.. means up to the newest".into()
        }
    };
    Err(CommandError::usage(
        format!("{range:?} is not a range of checkpoints"),
        hint,
    ))
}

/// The checkpoints of a loop, by the names that people type.
pub(super) struct LoopCheckpoints<'a> {
    name: &'a str,
    state: &'a State,
    pub(super) all: Checkpoints,
}

impl<'a> LoopCheckpoints<'a> {
    pub(super) fn find(handle: &'a LoopHandle) -> Result<Self, CommandError> {
        let (name, state) = (handle.dir.name(), &handle.view.state);
        let found = Checkpoints::find(&handle.dir.git_scratch())
            .filter(|_| state.plan.checkpoints)
            .map(|all| Self { name, state, all });
        found.ok_or_else(|| {
            let why = if !state.plan.checkpoints {
                "it was started with --no-checkpoints, or by an earlier version of ralph"
            } else if state.checkpoint.newest.is_none() {
                "checkpoints are taken in git repositories only, the first one when the loop starts"
            } else {
                "its files in the state directory are missing"
            };
            CommandError::usage(format!("the loop {name:?} has no checkpoints"), why)
        })
    }

    /// Returns the checkpoint that a number, `best` or `undo` names.
    pub(super) fn get(&self, typed: &str) -> Result<Checkpoint, CommandError> {
        let number = self.resolve(typed)?;
        let found = self.all.get(&number).map_err(CommandError::broken)?;
        found.ok_or_else(|| self.unknown(typed))
    }

    /// Returns the name of the checkpoint that was typed: a number or `undo`.
    pub(super) fn resolve(&self, typed: &str) -> Result<String, CommandError> {
        match typed {
            "best" => {
                let best = self.state.best_iteration();
                best.map(|best| best.iteration.to_string()).ok_or_else(|| {
                    CommandError::usage(
                        format!("the loop {:?} has no best iteration", self.name),
                        format!("no checks have run after a checkpoint; {}", self.existing()),
                    )
                })
            }
            UNDO => Ok(UNDO.into()),
            _ => match typed.parse::<u32>() {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err(self.unknown(typed)),
            },
        }
    }

    fn newest(&self) -> Result<Checkpoint, CommandError> {
        let numbers = self.all.numbers().map_err(CommandError::broken)?;
        match numbers.last() {
            Some(number) => self.get(&number.to_string()),
            None => Err(self.unknown("0")),
        }
    }

    fn unknown(&self, typed: &str) -> CommandError {
        if typed == UNDO {
            return CommandError::usage(
                format!("there is nothing to undo: {:?} was not rewound", self.name),
                self.existing(),
            );
        }
        CommandError::usage(
            format!("the loop {:?} has no checkpoint {typed:?}", self.name),
            self.existing(),
        )
    }

    /// Lists the checkpoints: `it has 0 to 3, and 5`.
    fn existing(&self) -> String {
        let numbers = self.all.numbers().unwrap_or_default();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        let texts: Vec<String> = ranges
            .iter()
            .map(|(first, last)| match last - first {
                0 => first.to_string(),
                _ => format!("{first} to {last}"),
            })
            .collect();
        match &texts[..] {
            [] => "its refs in git are missing".into(),
            texts => format!("it has {}", texts.join(", ")),
        }
    }
}
