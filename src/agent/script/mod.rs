//! What the built-in scripted agent does, step by step: an agent for demos and tests that needs no model.

mod parse;
mod sleeper;

pub use parse::parse;
pub use sleeper::sleeper;

use crate::engine::plan::SCRIPT;
use rustix::process::{Signal, getpid, kill_process};
use sleeper::Fork;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The exit code of a step that could not be carried out.
pub const TROUBLE: i32 = 97;

/// The command behind an agent's command: a scripted agent is this program in a process of its own.
pub fn resolve(command: &[String]) -> Vec<String> {
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

/// Where this program is; one that was replaced while it runs is still there under /proc.
pub fn this_program() -> PathBuf {
    std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| "/proc/self/exe".into())
}

/// What a scripted agent does in each iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    sections: Vec<Section>,
}

/// Where a script is played.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Which iteration this is; the first is 1.
    pub iteration: u32,
    /// Where markers and costs go, if the loop has such a directory.
    pub task_dir: Option<PathBuf>,
    /// The workspace.
    pub dir: PathBuf,
    /// This program, which leaves sleepers behind when it is called as `ralph __sleeper …`.
    pub ralph: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    when: When,
    steps: Vec<(usize, Step)>,
}

/// Which iterations a section is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Between(u32, u32),
    EveryOther,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
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
    Fork(Fork),
    Hang,
    Exit(i32),
    Crash,
}

impl Script {
    /// Plays this iteration in this very process, with its standard streams. The exit code.
    pub fn play(&self, stage: &Stage) -> i32 {
        self.play_with(stage, &mut io::stdin(), &mut io::stdout())
    }

    fn play_with(&self, stage: &Stage, input: &mut dyn Read, output: &mut dyn Write) -> i32 {
        for (line, step) in self.steps(stage.iteration) {
            match step
                .take(stage, input, output)
                .and_then(|code| output.flush().map(|()| code))
            {
                Ok(None) => {}
                Ok(Some(code)) => return code,
                Err(error) => {
                    // With standard error closed, the exit code alone must do.
                    let _ = writeln!(io::stderr(), "scripted agent: line {line}: {error}");
                    return TROUBLE;
                }
            }
        }
        0
    }

    fn steps(&self, iteration: u32) -> &[(usize, Step)] {
        let named = |section: &&Section| matches!(section.when, When::Between(from, to) if (from..=to).contains(&iteration));
        let section = self.sections.iter().find(named);
        let section = section.or_else(|| {
            self.sections
                .iter()
                .find(|section| section.when == When::EveryOther)
        });
        section.map_or(&[], |section| &section.steps)
    }
}

impl Step {
    /// Carries the step out. An exit code, if it is the last one.
    fn take(
        &self,
        stage: &Stage,
        input: &mut dyn Read,
        output: &mut dyn Write,
    ) -> io::Result<Option<i32>> {
        match self {
            Self::Print(text) => output.write_all(text.as_bytes())?,
            Self::Write { path, content } => {
                fs::write(with_parents(&stage.dir.join(path))?, content)?
            }
            Self::Append { path, content } => append(&stage.dir.join(path), content)?,
            Self::Replace { path, old, new } => replace(&stage.dir.join(path), old, new)?,
            Self::Delete(path) => delete(&stage.dir.join(path))?,
            Self::Sleep(time) => std::thread::sleep(*time),
            Self::EchoPrompt => io::copy(input, output).map(drop)?,
            Self::ReadPrompt => io::copy(input, &mut io::sink()).map(drop)?,
            Self::Flood { bytes, oneline } => flood(output, *bytes, *oneline)?,
            Self::Mark { name, text } => {
                // Whoever watches for a marker must not find it before its text is in.
                let draft = stage.task_file(&format!(".{name}.draft"))?;
                fs::write(&draft, text)?;
                fs::rename(draft, stage.task_file(name)?)?;
            }
            Self::Cost(cost) => append(&stage.task_file("COST")?, &format!("{cost}\n"))?,
            Self::Ignore(signal) => {
                signal_hook::flag::register(*signal, Arc::default()).map(drop)?
            }
            Self::Shell(command) => {
                Command::new("sh")
                    .args(["-c", command])
                    .current_dir(&stage.dir)
                    .status()?;
            }
            Self::Fork(fork) => {
                let pid = fork.start(&stage.ralph)?;
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

impl Stage {
    fn task_file(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self
            .task_dir
            .as_ref()
            .ok_or_else(|| io::Error::other("there is no task directory (RALPH_TASK_DIR)"))?;
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
    // Both may be part of a line: their last newline is the script's, not the file's.
    let (old, new) = (
        old.strip_suffix('\n').unwrap_or(old),
        new.strip_suffix('\n').unwrap_or(new),
    );
    let text = fs::read_to_string(path)?;
    match text.matches(old).count() {
        1 => fs::write(path, text.replacen(old, new, 1)),
        count => Err(io::Error::other(format!(
            "{} has {old:?} {count} times, not once",
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

    /// Plays a script that is one iteration long; its exit code and output.
    fn play(dir: &TempDir, steps: &str) -> (i32, String) {
        play_iteration(dir, &format!("iteration 1\n{steps}"), 1)
    }

    fn play_iteration(dir: &TempDir, script: &str, iteration: u32) -> (i32, String) {
        let dir = dir.path().to_path_buf();
        let stage = Stage {
            iteration,
            task_dir: Some(dir.join("task")),
            dir,
            ralph: "/nonexistent".into(),
        };
        let mut output = Vec::new();
        let code =
            parse(script)
                .unwrap()
                .play_with(&stage, &mut "the prompt".as_bytes(), &mut output);
        (code, String::from_utf8(output).unwrap())
    }

    #[test]
    fn file_steps_change_files() {
        let dir = TempDir::new().unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let steps =
            "write a/b.txt\n | one\n |   two\n |\n # between\n\n | three\nappend a/b.txt\n | four";
        assert_eq!(play(&dir, steps).0, 0);
        assert_eq!(read("a/b.txt"), "one\n  two\n\nthree\nfour\n");
        assert_eq!(play(&dir, "replace a/b.txt\n - three\n - four\n + 3").0, 0);
        assert_eq!(read("a/b.txt"), "one\n  two\n\n3\n");
        assert_eq!(play(&dir, "replace a/b.txt\n - wo\n + oo").0, 0);
        assert_eq!(read("a/b.txt"), "one\n  too\n\n3\n");
        assert_eq!(
            play(&dir, "replace a/b.txt\n - o\n + x\nwrite not\n | here").0,
            TROUBLE,
            "more than once"
        );
        assert_eq!(
            play(&dir, "replace a/b.txt\n - zebra\n + x").0,
            TROUBLE,
            "not there"
        );
        assert_eq!(play(&dir, "replace missing\n - zebra\n + x").0, TROUBLE);
        assert!(!dir.path().join("not").exists());
        assert_eq!(
            play(
                &dir,
                "write empty\ndelete a/b.txt\ndelete a\nexit 3\nwrite not"
            )
            .0,
            3
        );
        assert_eq!(read("empty"), "");
        assert!(!dir.path().join("a").exists() && !dir.path().join("not").exists());
        assert_eq!(play(&dir, "delete a").0, TROUBLE);
    }

    #[test]
    fn printing_steps_print() {
        let dir = TempDir::new().unwrap();
        let steps =
            "say  two  blanks \nsay\nprint a\nprint b\nsay .\necho-prompt\nread-prompt\nsay";
        assert_eq!(
            play(&dir, steps),
            (0, "two  blanks\n\nab.\nthe prompt\n".into())
        );
        let steps = "promise ALL DONE\nblocked no key";
        assert_eq!(
            play(&dir, steps),
            (
                0,
                "<promise>ALL DONE</promise>\n<blocked>no key</blocked>\n".into()
            )
        );
        let flood = play(&dir, "flood 200KiB").1;
        assert_eq!(flood.len(), 200 << 10);
        assert!(
            flood.lines().next().unwrap().len() == 80
                && flood.lines().count() == (200 << 10) / 81 + 1
        );
        let flood = play(&dir, "flood 1MiB oneline").1;
        assert!(flood.len() == 1 << 20 && !flood.contains('\n'));
    }

    #[test]
    fn markers_and_costs_go_into_the_task_directory() {
        let dir = TempDir::new().unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join("task").join(name)).unwrap();
        assert_eq!(
            play(
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
        let stage = Stage {
            iteration: 1,
            task_dir: None,
            dir: dir.path().into(),
            ralph: "/".into(),
        };
        assert_eq!(
            parse("iteration 1\nmark WAIT").unwrap().play(&stage),
            TROUBLE
        );
    }

    #[test]
    fn shell_steps_run_in_the_workspace_and_their_exit_code_is_ignored() {
        let dir = TempDir::new().unwrap();
        assert_eq!(play(&dir, "sh echo x > made; exit 9\nsleep 1ms").0, 0);
        assert!(dir.path().join("made").exists());
    }

    #[test]
    fn each_iteration_plays_its_own_section() {
        let dir = TempDir::new().unwrap();
        let script = "iteration *\n say other\niteration 1\n say one\niteration 3-4\n say some\niteration 9-\n say late\n";
        let said: Vec<_> = [1, 2, 3, 4, 5, 8, 9, 100]
            .map(|at| play_iteration(&dir, script, at).1)
            .into();
        assert_eq!(
            said.concat(),
            "one\nother\nsome\nsome\nother\nother\nlate\nlate\n"
        );
        assert_eq!(
            play_iteration(&dir, "iteration 2\n exit 5", 1),
            (0, String::new())
        );
    }

    #[test]
    fn the_demo_is_red_twice_and_then_green() {
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
        // Neither pauses nor chatter matter here.
        let idle =
            |line: &&str| !line.trim().starts_with("sleep ") && !line.trim().starts_with("sh ");
        let demo: Vec<&str> = demo.lines().filter(idle).collect();
        let mut seen = vec![(green("test.sh"), green("lint.sh"))];
        for iteration in 1..=3 {
            assert_eq!(play_iteration(&dir, &demo.join("\n"), iteration).0, 0);
            seen.push((green("test.sh"), green("lint.sh")));
        }
        assert_eq!(
            seen,
            [(false, true), (false, false), (false, true), (true, true)]
        );
    }
}
