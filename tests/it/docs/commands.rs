//! Runs the commands of each page in order, in one repository, as a reader would: each command sees what the previous ones
//! left behind. A page that names a loop must have started it.

use super::{Block, blocks, examples, pages};
use crate::kit::{Done, Live, Test, until};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// An agent that makes every check pass, writes what it is asked for and makes the promise that the
/// prompt names. In a spawned loop it works until the file `$MORNING` exists. It asks about a port
/// before it serves anything, changes a test if it is asked to rename something, and reaches a usage
/// limit in the first iteration of a loop called `dates`.
const AGENT: &str = r#"#!/bin/sh
case "$1" in --plugin-dir) exit 0 ;; esac
if test -t 0; then echo ready && read -r prompt; else prompt=$(cat); fi
echo working
case "$prompt" in
*"port 8080"*) ;;
*Serve*) echo '<blocked>Which port?</blocked>' && exit ;;
*roof*) echo tiles >roof.md ;;
*report*) touch report.md ;;
*Rename*) echo new >tests/names.txt && echo '<changed>the task renames them</changed>' ;;
*PLAN*) echo 'All tasks done' ;;
esac
if test "$RALPH_LOOP $RALPH_ITERATION" = "dates 1"; then
    echo "You've hit your usage limit"
    exit 1
fi
if test -n "$MORNING"; then
    touch "$MORNING.awaited"
    until test -e "$MORNING"; do sleep 0.02; done
fi
touch .passes
echo "iteration $RALPH_ITERATION of $RALPH_LOOP" >>notes.md
promise=$(echo "$prompt" | sed -n 's:.*\(<promise>[^<]*</promise>\).*:\1:p' | head -n 1)
echo "${promise:-<promise>COMPLETE</promise>}"
"#;
/// Tools whose checks are red until an agent has run.
const CHECK: &str = "#!/bin/sh\ntest -f .passes\n";
const CARGO: &str = r#"#!/bin/sh
case "$*" in
"run --release -- "*) shift 3 && exec ralph "$@" ;;
"install --path ." | "uninstall ralph") exit 0 ;;
"run --example "*) exec "$EXAMPLES/$3" ;;
*) test -f .passes ;;
esac
"#;
const NOTHING: &str = "#!/bin/sh\n";

/// A reader with a repository, who has Rust, npm, Python and two agents installed.
struct Reader {
    test: Test,
}

impl Reader {
    fn new(page: &[Block]) -> Self {
        let mut test = Test::new()
            .file("README", "a project\n")
            .file(
                "spec.md",
                "What is wanted.\n\nThen say <promise>COMPLETE</promise>\n",
            )
            .file("PLAN.md", "- the parser\n")
            .file("tests/names.txt", "old\n")
            .program("my-agent", AGENT)
            .program("test.sh", NOTHING)
            .on_path("claude", AGENT)
            .on_path("codex", AGENT)
            .on_path("cargo", CARGO)
            .on_path("npm", CHECK)
            .on_path("pytest", CHECK)
            .on_path("just", NOTHING)
            .on_path("curl", NOTHING)
            .on_path("mail", NOTHING)
            .on_path("notify-send", NOTHING)
            .on_path("osascript", NOTHING)
            .on_path("systemctl", NOTHING)
            .on_path("loginctl", NOTHING)
            .on_path("launchctl", NOTHING);
        if !page
            .iter()
            .any(|block| block.lines.iter().any(|line| line == "ralph init"))
        {
            test = test.file("PROMPT.md", "Work through PLAN.md.\n");
        }
        test.sh(
            "git init -q -b main && git add -A && git commit -q -m first && \
             git init -q --bare -b main ../remote.git && \
             git remote add origin ../remote.git && git push -q -u origin main",
        );
        let ralph = test.root().join("bin/ralph");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ralph"), ralph).unwrap();
        Self { test }
    }

    /// Runs a command line to its end.
    fn run_line(&self, line: &str) -> Done {
        if ["run", "spawn", "wait"]
            .iter()
            .any(|verb| line.starts_with(&format!("ralph {verb} ")))
        {
            self.wait_for_loops();
        }
        let is_spawn = line.starts_with("ralph spawn ");
        let running = self.start_line(line, is_spawn);
        if line.ends_with(" -f") {
            // A reader ends a command with `-f` with Ctrl-C.
            until("a first line", || !running.out().is_empty());
            let group = Pid::from_raw(running.pid() as i32).unwrap();
            kill_process_group(group, Signal::INT).unwrap();
            return Done {
                code: 0,
                ..running.end()
            };
        }
        let done = running.end();
        if is_spawn && done.code == 0 {
            let name = line
                .split_once("--name ")
                .unwrap()
                .1
                .split(' ')
                .next()
                .unwrap();
            let is_waiting = || self.morning().with_extension("awaited").exists();
            let rests = || self.test.status(name)["resting_until"].is_string();
            until("its agent at work", || is_waiting() || rests());
        }
        done
    }

    /// Starts a command line; the agents of a spawned loop wait for the morning.
    fn start_line(&self, line: &str, is_spawn: bool) -> Live {
        let mut command = self.test.command("sh");
        command
            .args(["-c", line])
            .env("EXAMPLES", examples())
            .process_group(0);
        if is_spawn {
            for file in [self.morning(), self.morning().with_extension("awaited")] {
                let _ = fs::remove_file(file);
            }
            command.env("MORNING", self.morning());
        }
        self.test.start_command(command)
    }

    fn morning(&self) -> PathBuf {
        self.test.root().join("morning")
    }

    /// Lets the agents of spawned loops finish, so that the workspace is free for the next loop.
    fn wait_for_loops(&self) {
        fs::write(self.morning(), "").unwrap();
        until("the end of loops in the background", || {
            self.test.survivors().is_empty()
        });
    }
}

/// Returns the exit code that a comment after a command announces; 0 without one.
fn expected_exit_code(line: &str) -> i32 {
    let comment = line.split_once(" # ").map_or("", |(_, comment)| comment);
    let code = comment
        .split_once("exit code ")
        .map_or("", |(_, rest)| rest);
    code.chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap_or(0)
}

/// Runs all commands of a page. Returns how many there were, or which one failed.
fn run(page: &Path) -> Result<usize, String> {
    let blocks = blocks(page, "sh");
    let reader = Reader::new(&blocks);
    let mut count = 0;
    for block in &blocks {
        let joined = block.lines.join("\n").replace("\\\n", " ");
        for line in joined.lines().filter(|line| !line.trim().is_empty()) {
            let done = reader.run_line(line);
            if done.code != expected_exit_code(line) {
                let Done { code, out, err } = done;
                reader.wait_for_loops();
                return Err(format!(
                    "{}: {line}\n  exit {code}\n{out}{err}",
                    block.place
                ));
            }
            count += 1;
        }
    }
    reader.wait_for_loops();
    Ok(count)
}

#[test]
fn every_documented_command_runs_in_the_order_of_its_page() {
    let pages = pages();
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = pages.iter().map(|page| scope.spawn(|| run(page))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let failed: Vec<&str> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .map(String::as_str)
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let count: usize = results.into_iter().flatten().sum();
    assert!(count > 80, "only {count} commands were found");
}
