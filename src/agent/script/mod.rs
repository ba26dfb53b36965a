//! The built-in scripted agent: runs the steps of a text file instead of a model.
//!
//! Used for demos and tests. `docs/scripted-agents.md` documents the file format.

mod parse;
mod sleeper;

pub(crate) use parse::parse;
pub(crate) use sleeper::run_sleeper;

use crate::engine::plan::SCRIPT;
use rustix::process::{Signal, getpid, kill_process};
use sleeper::ForkOptions;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Exit code of an iteration in which a step failed.
const STEP_FAILED: i32 = 97;

/// Resolves `script:FILE` to a command that runs this program on FILE. Returns any other command
/// unchanged.
pub(crate) fn resolve_command(command: &[String]) -> Vec<String> {
    match command
        .first()
        .and_then(|program| program.strip_prefix(SCRIPT))
    {
        None => command.to_vec(),
        Some(file) => vec![
            this_program().to_string_lossy().into_owned(),
            "__script".into(),
            file.into(),
        ],
    }
}

/// Returns the path of this program. If the program's file was replaced after the start, returns
/// its path under `/proc`, which still works.
pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| "/proc/self/exe".into())
}

/// A parsed script: the steps for each iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    sections: Vec<ScriptSection>,
}

/// The iteration number and the paths that a script uses.
#[derive(Clone, Debug)]
pub(crate) struct ScriptContext {
    /// The number of the iteration, counted from 1.
    pub(crate) iteration: u32,
    /// The directory for markers and costs; `None` outside a loop.
    pub(crate) task_dir: Option<PathBuf>,
    pub(crate) workspace: PathBuf,
    /// The path of this program. A `fork` step uses it to start `ralph __sleeper …`.
    pub(crate) ralph: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ScriptSection {
    range: IterationRange,
    /// The steps of the section, each with its line number.
    steps: Vec<(usize, ScriptStep)>,
}

/// The iterations that a section applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IterationRange {
    /// From the first number to the second, inclusive.
    Between(u32, u32),
    /// All iterations that no other section covers.
    Rest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ScriptStep {
    Print(String),
    Write {
        path: PathBuf,
        content: String,
    },
    Append {
        path: PathBuf,
        content: String,
    },
    Replace {
        path: PathBuf,
        old: String,
        new: String,
    },
    Delete(PathBuf),
    Sleep(Duration),
    EchoPrompt,
    ReadPrompt,
    Flood {
        bytes: u64,
        oneline: bool,
    },
    Mark {
        name: String,
        text: String,
    },
    Cost(String),
    Ignore(i32),
    Shell(String),
    Fork(ForkOptions),
    Hang,
    Exit(i32),
    Crash,
}

impl Script {
    /// Runs the steps of one iteration in this process and returns the exit code.
    pub(crate) fn run(&self, context: &ScriptContext) -> i32 {
        self.run_with(context, &mut io::stdin(), &mut io::stdout())
    }

    fn run_with(
        &self,
        context: &ScriptContext,
        input: &mut dyn Read,
        output: &mut dyn Write,
    ) -> i32 {
        for (line, step) in self.steps(context.iteration) {
            match step
                .run(context, input, output)
                .and_then(|code| output.flush().map(|()| code))
            {
                Ok(None) => {}
                Ok(Some(code)) => return code,
                Err(error) => {
                    // If standard error is closed, only the exit code reports the failure.
                    let _ = writeln!(io::stderr(), "scripted agent: line {line}: {error}");
                    return STEP_FAILED;
                }
            }
        }
        0
    }

    fn steps(&self, iteration: u32) -> &[(usize, ScriptStep)] {
        let covers = |section: &&ScriptSection| match section.range {
            IterationRange::Between(from, to) => (from..=to).contains(&iteration),
            IterationRange::Rest => false,
        };
        let rest = |section: &&ScriptSection| section.range == IterationRange::Rest;
        let sections = || self.sections.iter();
        let section = sections().find(covers).or_else(|| sections().find(rest));
        section.map_or(&[], |section| &section.steps)
    }
}

impl ScriptStep {
    /// Runs the step. Returns the exit code if the step ends the iteration; `None` otherwise.
    fn run(
        &self,
        context: &ScriptContext,
        input: &mut dyn Read,
        output: &mut dyn Write,
    ) -> io::Result<Option<i32>> {
        match self {
            Self::Print(text) => output.write_all(text.as_bytes())?,
            Self::Write { path, content } => {
                fs::write(with_parents(&context.workspace.join(path))?, content)?;
            }
            Self::Append { path, content } => append(&context.workspace.join(path), content)?,
            Self::Replace { path, old, new } => replace(&context.workspace.join(path), old, new)?,
            Self::Delete(path) => delete(&context.workspace.join(path))?,
            Self::Sleep(time) => std::thread::sleep(*time),
            Self::EchoPrompt => io::copy(input, output).map(drop)?,
            Self::ReadPrompt => io::copy(input, &mut io::sink()).map(drop)?,
            Self::Flood { bytes, oneline } => flood(output, *bytes, *oneline)?,
            Self::Mark { name, text } => {
                // Rename the draft, so that the marker never exists without its text.
                let draft = context.task_file(&format!(".{name}.draft"))?;
                fs::write(&draft, text)?;
                fs::rename(draft, context.task_file(name)?)?;
            }
            Self::Cost(cost) => append(&context.task_file("COST")?, &format!("{cost}\n"))?,
            Self::Ignore(signal) => {
                signal_hook::flag::register(*signal, Arc::default()).map(drop)?;
            }
            Self::Shell(command) => {
                Command::new("sh")
                    .args(["-c", command])
                    .current_dir(&context.workspace)
                    .status()?;
            }
            Self::Fork(fork) => {
                let pid = fork.start(&context.ralph)?;
                writeln!(output, "forked {pid}")?;
            }
            Self::Hang => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            Self::Exit(code) => return Ok(Some(*code)),
            Self::Crash => kill_process(getpid(), Signal::KILL)?,
        }
        Ok(None)
    }
}

impl ScriptContext {
    fn task_file(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.task_dir.as_ref().ok_or_else(|| {
            io::Error::other("RALPH_TASK_DIR is not set; run the script in a loop")
        })?;
        fs::create_dir_all(dir)?;
        Ok(dir.join(name))
    }
}

fn with_parents(path: &Path) -> io::Result<&Path> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    Ok(path)
}

fn append(path: &Path, content: &str) -> io::Result<()> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(with_parents(path)?)?
        .write_all(content.as_bytes())
}

fn delete(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

fn replace(path: &Path, old: &str, new: &str) -> io::Result<()> {
    // The texts may be parts of lines, so their last newline is not content.
    let (old, new) = (
        old.strip_suffix('\n').unwrap_or(old),
        new.strip_suffix('\n').unwrap_or(new),
    );
    let text = fs::read_to_string(path)?;
    match text.matches(old).count() {
        1 => fs::write(path, text.replacen(old, new, 1)),
        count => Err(io::Error::other(format!(
            "{} contains {old:?} {count} times, not once",
            path.display()
        ))),
    }
}

fn flood(output: &mut dyn Write, bytes: u64, oneline: bool) -> io::Result<()> {
    let line = if oneline {
        "0123456789".repeat(8)
    } else {
        "0123456789".repeat(8) + "\n"
    };
    let block = line.repeat(800);
    let mut left = bytes;
    while left > 0 {
        let part = left.min(block.len() as u64);
        output.write_all(&block.as_bytes()[..part as usize])?;
        left -= part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Runs `steps` as iteration 1. Returns the exit code and the output.
    fn run(dir: &TempDir, steps: &str) -> (i32, String) {
        run_iteration(dir, &format!("iteration 1\n{steps}"), 1)
    }

    fn run_iteration(dir: &TempDir, script: &str, iteration: u32) -> (i32, String) {
        let dir = dir.path().to_path_buf();
        let context = ScriptContext {
            iteration,
            task_dir: Some(dir.join("task")),
            workspace: dir,
            ralph: "/nonexistent".into(),
        };
        let mut output = Vec::new();
        let code =
            parse(script)
                .unwrap()
                .run_with(&context, &mut "the prompt".as_bytes(), &mut output);
        (code, String::from_utf8(output).unwrap())
    }

    #[test]
    fn file_steps_write_append_replace_and_delete() {
        let dir = TempDir::new().unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let steps =
            "write a/b.txt\n | one\n |   two\n |\n # between\n\n | three\nappend a/b.txt\n | four";
        assert_eq!(run(&dir, steps).0, 0);
        assert_eq!(read("a/b.txt"), "one\n  two\n\nthree\nfour\n");
        assert_eq!(run(&dir, "replace a/b.txt\n - three\n - four\n + 3").0, 0);
        assert_eq!(read("a/b.txt"), "one\n  two\n\n3\n");
        assert_eq!(run(&dir, "replace a/b.txt\n - wo\n + oo").0, 0);
        assert_eq!(read("a/b.txt"), "one\n  too\n\n3\n");
        assert_eq!(
            run(&dir, "replace a/b.txt\n - o\n + x\nwrite not\n | here").0,
            STEP_FAILED,
            "more than once"
        );
        assert_eq!(
            run(&dir, "replace a/b.txt\n - zebra\n + x").0,
            STEP_FAILED,
            "not found"
        );
        assert_eq!(run(&dir, "replace missing\n - zebra\n + x").0, STEP_FAILED);
        assert!(!dir.path().join("not").exists());
        assert_eq!(
            run(
                &dir,
                "write empty\ndelete a/b.txt\ndelete a\nexit 3\nwrite not"
            )
            .0,
            3
        );
        assert_eq!(read("empty"), "");
        assert!(!dir.path().join("a").exists() && !dir.path().join("not").exists());
        assert_eq!(run(&dir, "delete a").0, STEP_FAILED);
    }

    #[test]
    fn output_steps_print_exactly_what_they_say() {
        let dir = TempDir::new().unwrap();
        let steps =
            "say  two  blanks \nsay\nprint a\nprint b\nsay .\necho-prompt\nread-prompt\nsay";
        assert_eq!(
            run(&dir, steps),
            (0, "two  blanks\n\nab.\nthe prompt\n".into())
        );
        let steps = "promise ALL DONE\nblocked no key";
        assert_eq!(
            run(&dir, steps),
            (
                0,
                "<promise>ALL DONE</promise>\n<blocked>no key</blocked>\n".into()
            )
        );
        let flood = run(&dir, "flood 200KiB").1;
        assert_eq!(flood.len(), 200 << 10);
        assert!(
            flood.lines().next().unwrap().len() == 80
                && flood.lines().count() == (200 << 10) / 81 + 1
        );
        let flood = run(&dir, "flood 1MiB oneline").1;
        assert!(flood.len() == 1 << 20 && !flood.contains('\n'));
    }

    #[test]
    fn markers_and_costs_go_into_the_task_directory() {
        let dir = TempDir::new().unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join("task").join(name)).unwrap();
        assert_eq!(
            run(
                &dir,
                "mark DONE\nmark BLOCKED which port?\ncost 0.12\ncost 1"
            )
            .0,
            0
        );
        assert_eq!(
            (read("DONE"), read("BLOCKED"), read("COST")),
            (String::new(), "which port?\n".into(), "0.12\n1\n".into())
        );
        assert_eq!(fs::read_dir(dir.path().join("task")).unwrap().count(), 3);
        let context = ScriptContext {
            iteration: 1,
            task_dir: None,
            workspace: dir.path().into(),
            ralph: "/".into(),
        };
        assert_eq!(
            parse("iteration 1\nmark WAIT").unwrap().run(&context),
            STEP_FAILED
        );
    }

    #[test]
    fn shell_steps_run_in_the_workspace_and_their_exit_code_is_ignored() {
        let dir = TempDir::new().unwrap();
        assert_eq!(run(&dir, "sh echo x > made; exit 9\nsleep 1ms").0, 0);
        assert!(dir.path().join("made").exists());
    }

    #[test]
    fn each_iteration_runs_its_own_section() {
        let dir = TempDir::new().unwrap();
        let script = "iteration *\n say other\niteration 1\n say one\niteration 3-4\n say some\niteration 9-\n say late\n";
        let said: Vec<_> = [1, 2, 3, 4, 5, 8, 9, 100]
            .map(|at| run_iteration(&dir, script, at).1)
            .into();
        assert_eq!(
            said.concat(),
            "one\nother\nsome\nsome\nother\nother\nlate\nlate\n"
        );
        assert_eq!(
            run_iteration(&dir, "iteration 2\n exit 5", 1),
            (0, String::new())
        );
    }

    #[test]
    fn the_demo_fails_its_checks_twice_and_then_passes() {
        let dir = TempDir::new().unwrap();
        for (name, content) in [
            ("total.sh", include_str!("../../../presets/demo/total.sh")),
            ("test.sh", include_str!("../../../presets/demo/test.sh")),
            ("lint.sh", include_str!("../../../presets/demo/lint.sh")),
        ] {
            fs::write(dir.path().join(name), content).unwrap();
        }
        let green = |name: &str| {
            Command::new("sh")
                .arg(name)
                .current_dir(dir.path())
                .output()
                .unwrap()
                .status
                .success()
        };
        let demo = include_str!("../../../presets/demo/demo.script");
        // Sleeps and shell commands do not change the result.
        let has_effect =
            |line: &&str| !line.trim().starts_with("sleep ") && !line.trim().starts_with("sh ");
        let demo: Vec<&str> = demo.lines().filter(has_effect).collect();
        let mut seen = vec![(green("test.sh"), green("lint.sh"))];
        for iteration in 1..=3 {
            assert_eq!(run_iteration(&dir, &demo.join("\n"), iteration).0, 0);
            seen.push((green("test.sh"), green("lint.sh")));
        }
        assert_eq!(
            seen,
            [(false, true), (false, false), (false, true), (true, true)]
        );
    }
}
