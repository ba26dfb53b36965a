//! Loops recorded with every released version, and what that version printed: formats only ever grow.
//!
//! `testdata/golden/VERSION/SCENE` contains the directories of a scene's loops under `loops`, and what that version
//! printed: `run.jsonl` (`ralph run --json`), `ls.json`, `NAME.json` (`ralph status NAME --json`) and `NAME.txt`
//! (`ralph status NAME`). Record them when a version is released, with that version's binary:
//!
//! ```text
//! RALPH_GOLDEN=/path/to/ralph cargo test --test it golden
//! ```

mod scenes;

use crate::kit::{Done, Live, Test, until};
use scenes::{SCENES, Scene};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A placeholder for a test's root directory, which contains its workspace and its state directory.
const ROOT: &str = "{ROOT}";
/// A placeholder for a value that differs from run to run.
const VARIES: &str = "…";
/// Replaces every process ID in a record with one that no process can have: `ralph resume` kills
/// what is left of a crashed loop, and must not find a process of the machine that runs the tests.
const NO_PROCESS: &str = "\"pid\":4194305";

/// A repository with an agent, and the binary that runs loops in it.
struct Stage {
    test: Test,
    ralph: PathBuf,
}

impl Stage {
    fn new(scene: &Scene, ralph: &Path) -> Self {
        let test = Test::new()
            .file("README", "A house without a roof.\n")
            .script(scene.script);
        let test = test.program("agent", "#!/bin/sh\necho '<promise>COMPLETE</promise>'\n");
        test.sh("git init -q -b main && git add -A && git commit -q -m first");
        fs::create_dir(test.root().join("bin")).unwrap();
        std::os::unix::fs::symlink(ralph, test.root().join("bin/ralph")).unwrap();
        Self {
            test,
            ralph: ralph.to_owned(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.test.command(&self.ralph);
        command.args(args).env("TZ", "UTC");
        command
    }

    fn start(&self, args: &[&str]) -> Live {
        self.test.start_command(self.command(args))
    }

    fn ralph(&self, args: &[&str]) -> Done {
        self.start(args).end()
    }

    fn status(&self, name: &str) -> Value {
        self.json(&["status", name, "--json"])
    }

    fn json(&self, args: &[&str]) -> Value {
        parse(&self.without_root(&self.ralph(args).exits(0).out))
    }

    fn program(&self, name: &str, text: &str) {
        self.test.write(name, text);
    }

    fn until_file(&self, name: &str) {
        until(name, || self.test.workspace().join(name).exists());
    }

    /// Returns the root as ralph prints it: without symbolic links.
    fn root(&self) -> String {
        fs::canonicalize(self.test.root())
            .unwrap()
            .display()
            .to_string()
    }

    fn without_root(&self, text: &str) -> String {
        text.replace(&self.root(), ROOT)
    }

    /// Returns the names of this stage's loops.
    fn loops(&self) -> Vec<String> {
        entries(&self.test.state_dir().join("loops"))
    }

    /// Copies recorded loops here, as if they had run here.
    fn place(&self, recorded: &Path) {
        for name in entries(&recorded.join("loops")) {
            let from = recorded.join("loops").join(&name);
            // Every copy has an ID of its own: opening a crashed loop ends all processes with its
            // ID, and another test may run a copy of the same loop.
            let header = read(&from.join("journal.jsonl"));
            let old_id = parse(header.lines().next().unwrap())["id"].clone();
            let new_id = format!("{:016x}", fastrand::u64(..));
            for file in files(&from) {
                let to = self
                    .test
                    .loop_dir(&name)
                    .join(file.strip_prefix(&from).unwrap());
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                let text = read(&file)
                    .replace(ROOT, &self.root())
                    .replace(old_id.as_str().unwrap(), &new_id);
                fs::write(to, text).unwrap();
            }
        }
    }

    /// Records this stage's loops, and what is printed about them.
    fn record(&self, printed: &str, to: &Path) {
        let pid = regex::Regex::new(r#""pid":\d+"#).unwrap();
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(
                path,
                pid.replace_all(&self.without_root(text), NO_PROCESS)
                    .as_bytes(),
            )
            .unwrap();
        };
        for name in self.loops() {
            let dir = self.test.loop_dir(&name);
            for file in files(&dir).iter().filter(|file| is_recorded(file)) {
                let path = to
                    .join("loops")
                    .join(&name)
                    .join(file.strip_prefix(&dir).unwrap());
                write(&path, &fs::read_to_string(file).unwrap());
            }
            write(
                &to.join(format!("{name}.json")),
                &self.ralph(&["status", &name, "--json"]).exits(0).out,
            );
            write(
                &to.join(format!("{name}.txt")),
                &self.ralph(&["status", &name]).exits(0).out,
            );
        }
        write(
            &to.join("ls.json"),
            &self.ralph(&["ls", "--json"]).exits(0).out,
        );
        write(&to.join("run.jsonl"), printed);
    }
}

/// Returns whether a file in a loop's directory is recorded. The cache is not: it contains offsets
/// into the journal, which depend on the length of the paths. All other files are derived from
/// these or empty.
fn is_recorded(file: &Path) -> bool {
    let name = file.file_name().unwrap().to_string_lossy();
    let is_log = name.ends_with(".log") || name.ends_with(".jsonl") || name == "pulse";
    is_log && fs::metadata(file).unwrap().len() > 0
}

fn entries(dir: &Path) -> Vec<String> {
    let list = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> = list
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Returns all files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let paths = entries(dir).into_iter().map(|name| dir.join(name));
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(parse).collect()
}

/// Returns the recorded versions, oldest first.
fn versions() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden");
    let numbers = |name: &String| {
        name.split('.')
            .map(|part| part.parse::<u32>().unwrap())
            .collect::<Vec<_>>()
    };
    let mut names = entries(&golden);
    names.sort_by_key(numbers);
    names.iter().map(|name| golden.join(name)).collect()
}

/// Returns the kinds of events in a version's records.
fn kinds(version: &Path) -> BTreeSet<String> {
    let journals = files(version)
        .into_iter()
        .filter(|file| file.ends_with("journal.jsonl"));
    let events = journals.flat_map(|journal| lines(&read(&journal)));
    events
        .filter_map(|event| Some(event.get("event")?.as_str()?.to_owned()))
        .collect()
}

/// Replaces values that differ from run to run: times, durations, process IDs, random names and
/// commits.
fn normalize(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let varies = match name.as_str() {
                    "at"
                    | "at_ms"
                    | "ms"
                    | "created"
                    | "created_ms"
                    | "duration_s"
                    | "active_s"
                    | "started"
                    | "last_iteration_started"
                    | "until_ms"
                    | "pid"
                    | "start_time"
                    | "id"
                    | "commit"
                    | "base" => !field.is_null(),
                    // The program's version, not the format's.
                    "version" => field.is_string(),
                    _ => false,
                };
                if varies {
                    *field = VARIES.into();
                } else {
                    normalize(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        _ => {}
    }
}

/// Fields whose values may change: the sentence that explains an outcome, the prompt's template,
/// and what presets contain about an agent.
const REVISED: [&str; 5] = ["detail", "template", "reasons", "denied", "unset"];

/// Returns the place at which `now` lacks a part of the recorded value. `None` if it lacks nothing.
/// Fields may have been added.
fn difference(recorded: &Value, now: &Value, at: &str) -> Option<String> {
    match (recorded, now) {
        (Value::Object(recorded), Value::Object(now)) => {
            recorded.iter().find_map(|(name, field)| {
                let at = format!("{at}.{name}");
                match now.get(name) {
                    None => Some(format!("{at} is missing")),
                    Some(_) if REVISED.contains(&name.as_str()) => None,
                    Some(now) => difference(field, now, &at),
                }
            })
        }
        (Value::Array(recorded), Value::Array(now)) if recorded.len() == now.len() => {
            let mut pairs = recorded.iter().zip(now).enumerate();
            pairs.find_map(|(index, (recorded, now))| {
                difference(recorded, now, &format!("{at}[{index}]"))
            })
        }
        (Value::Array(recorded), Value::Array(now)) => Some(format!(
            "{at} had {} items and has {}",
            recorded.len(),
            now.len()
        )),
        _ => (recorded != now).then(|| format!("{at} was {recorded} and is {now}")),
    }
}

/// Compares lines after replacing values that differ from run to run.
#[track_caller]
fn assert_same(what: &str, recorded: Vec<Value>, now: Vec<Value>) {
    let normal = |lines: Vec<Value>| {
        let mut lines = Value::from(lines);
        normalize(&mut lines);
        lines
    };
    let shown = |lines: &Value| {
        let lines = lines
            .as_array()
            .unwrap()
            .iter()
            .filter(|line| line.get("plan").is_none());
        lines
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (recorded, now) = (normal(recorded), normal(now));
    if let Some(found) = difference(&recorded, &now, what) {
        panic!(
            "{found}\n--- recorded\n{}\n--- now\n{}\n---",
            shown(&recorded),
            shown(&now)
        );
    }
}

/// Runs the scenes with this binary, all at once, and passes each to `then`.
fn play<'a>(
    ralph: &Path,
    scenes: impl Iterator<Item = &'a Scene>,
    then: impl Fn(&Scene, &Stage, &str) + Sync,
) {
    std::thread::scope(|scope| {
        for scene in scenes {
            let then = &then;
            scope.spawn(move || {
                let stage = Stage::new(scene, ralph);
                let printed = (scene.play)(&stage);
                then(scene, &stage, &printed);
            });
        }
    });
}

#[test]
fn loops_run_as_the_newest_recorded_version_ran_them() {
    if let Some(ralph) = std::env::var_os("RALPH_GOLDEN") {
        return record(Path::new(&ralph));
    }
    let recorded = versions().pop().expect("a recorded version");
    let known = kinds(&recorded);
    // Scenes that were added later are recorded with the next version.
    let scenes = SCENES
        .iter()
        .filter(|scene| recorded.join(scene.name).exists());
    play(
        Path::new(env!("CARGO_BIN_EXE_ralph")),
        scenes,
        |scene, stage, printed| {
            let same = |path: &str, now: &str| {
                let path = format!("{}/{path}", scene.name);
                let mut now = lines(&stage.without_root(now));
                // Kinds of events may have been added, too. A journal's header is not an event.
                now.retain(|line| {
                    line.get("event")
                        .is_none_or(|kind| known.contains(kind.as_str().unwrap()))
                });
                let mut before = lines(&read(&recorded.join(&path)));
                // A short rest may be over before the runner begins to wait for its end.
                for lines in [&mut before, &mut now] {
                    lines.retain(|line| line["event"] != "woke");
                }
                assert_same(&path, before, now);
            };
            same("run.jsonl", printed);
            assert_eq!(
                stage.loops(),
                entries(&recorded.join(scene.name).join("loops")),
                "{}",
                scene.name
            );
            for name in stage.loops() {
                same(
                    &format!("loops/{name}/journal.jsonl"),
                    &stage.test.read_loop(&name, "journal.jsonl"),
                );
            }
        },
    );
}

fn record(ralph: &Path) {
    let version = Command::new(ralph)
        .arg("--version")
        .output()
        .unwrap()
        .stdout;
    let version = String::from_utf8(version)
        .unwrap()
        .trim()
        .replace("ralph ", "");
    let to = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/golden")
        .join(version);
    let _ = fs::remove_dir_all(&to);
    play(ralph, SCENES.iter(), |scene, stage, printed| {
        stage.record(printed, &to.join(scene.name));
    });
}

/// Copies every recorded scene into its own directory and passes it to `then`.
fn placed(then: impl Fn(&Scene, &Stage, &Path)) {
    for version in versions() {
        for name in entries(&version) {
            let scene = SCENES
                .iter()
                .find(|scene| scene.name == name)
                .expect("a scene of this name");
            let stage = Stage::new(scene, Path::new(env!("CARGO_BIN_EXE_ralph")));
            let recorded = version.join(name);
            stage.place(&recorded);
            then(scene, &stage, &recorded);
        }
    }
}

/// Returns the lines of `ralph status` whose wording is fixed, without the explanations in
/// parentheses.
fn fixed_lines(status: &str) -> Vec<&str> {
    let kept = [
        "Ralph Loop",
        "Status",
        "Iteration",
        "Started",
        "Last iteration started",
        "Consecutive failures",
        "Total failures",
        "Done pattern",
    ];
    let label = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let lines = status
        .lines()
        .filter(|line| kept.contains(&label(line).as_str()));
    lines
        .map(|line| line.split(" (").next().unwrap_or_default())
        .collect()
}

#[test]
fn recorded_loops_are_shown_as_their_own_version_showed_them() {
    placed(|scene, stage, recorded| {
        for name in entries(&recorded.join("loops")) {
            let was = parse(&read(&recorded.join(format!("{name}.json"))));
            let found = difference(
                &was,
                &stage.status(&name),
                &format!("{}: {name}", scene.name),
            );
            assert_eq!(found, None);
            let was = read(&recorded.join(format!("{name}.txt")));
            let now = stage.without_root(&stage.ralph(&["status", &name]).exits(0).out);
            assert_eq!(
                fixed_lines(&now),
                fixed_lines(&was),
                "{}: {name}",
                scene.name
            );
            for log in files(&recorded.join("loops").join(&name))
                .iter()
                .filter(|file| file.ends_with("output.log"))
            {
                let iteration = log.parent().unwrap().file_name().unwrap().to_str().unwrap();
                let args = [
                    "logs",
                    &name,
                    "--iteration",
                    iteration.trim_start_matches('0'),
                ];
                stage.ralph(&args).exits(0).says(&read(log));
            }
        }
        let was = parse(&read(&recorded.join("ls.json")));
        assert_eq!(
            difference(&was, &stage.json(&["ls", "--json"]), scene.name),
            None
        );
    });
}

#[test]
fn recorded_loops_are_continued() {
    placed(|scene, stage, _| {
        let Some(args) = scene.resume else { return };
        let before = stage.status("loop")["current_iteration"].as_u64().unwrap();
        stage.ralph(&[&["resume", "loop"], args].concat()).exits(0);
        let status = stage.status("loop");
        assert_eq!(
            (&status["status"], status["current_iteration"].as_u64()),
            (&"done".into(), Some(before + 1)),
            "{}: {:#?}",
            scene.name,
            stage.test.journal("loop")
        );
        let journal = stage.test.journal("loop");
        let opened = journal
            .iter()
            .filter(|line| line["event"] == "opened")
            .count();
        assert_eq!(opened, 2, "{}", scene.name);
    });
}
