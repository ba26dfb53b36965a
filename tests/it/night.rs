//! The recorded night in `testdata/night`: three loops with 60 iterations, for the tests of every view.
//!
//! | Loop | Repository | Ends |
//! |---|---|---|
//! | `retries` | shop | crashed in iteration 12; iteration 4 failed, iteration 7 did not count |
//! | `links` | handbook | disputed in iteration 18: its agent changed a test |
//! | `totals` | shop | done in iteration 30; iteration 12 reached a usage limit, and the loop rested |

use crate::kit::Test;
use crate::pty::{Screen, rows};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The time at which the views of the recorded night are looked at, in milliseconds since 1970.
pub(crate) const MORNING_MS: i64 = 1_773_561_600_000; // 2026-03-15T08:00:00Z

/// The repositories below the user's home directory.
const REPOSITORIES: [&str; 2] = ["shop", "handbook"];

impl Test {
    /// Creates a test with the recorded night: its loops in the state directory, and the repositories
    /// in which they worked, with all checkpoints, below the home directory.
    pub(crate) fn night() -> Self {
        let test = Self::new();
        let bundle = |name: &str| {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/night");
            dir.join(format!("{name}.bundle")).display().to_string()
        };
        for name in REPOSITORIES {
            test.sh(&format!(
                "git init -q -b main ../home/{name} && cd ../home/{name} && \
                 git fetch -q --update-head-ok '{}' '+refs/*:refs/*' && git reset -q --hard",
                bundle(name)
            ));
        }
        test.sh(&format!(
            "git clone -q -b loops '{}' ../night",
            bundle("loops")
        ));
        let (root, recorded) = (test.root().display().to_string(), test.root().join("night"));
        for (name, repository) in [
            ("retries", "shop"),
            ("links", "handbook"),
            ("totals", "shop"),
        ] {
            let from = recorded.join(name);
            let journal = fs::read_to_string(from.join("journal.jsonl")).unwrap();
            let header: serde_json::Value =
                serde_json::from_str(journal.lines().next().unwrap()).unwrap();
            let old_id = header["id"].as_str().unwrap();
            // Opening a crashed loop ends all processes with its ID, and another test may have
            // installed the same night.
            let new_id = format!("{:016x}", fastrand::u64(..));
            for file in files(&from) {
                let to = test.loop_dir(name).join(file.strip_prefix(&from).unwrap());
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                match fs::read_to_string(&file) {
                    Ok(text) => {
                        let text = text.replace("{ROOT}", &root).replace(old_id, &new_id);
                        fs::write(to, text).unwrap();
                    }
                    Err(_) => drop(fs::copy(&file, to).unwrap()),
                }
            }
            // Git stores no empty directories, and these make the directory a repository.
            for empty in ["objects", "refs"] {
                fs::create_dir_all(test.loop_dir(name).join("git/content").join(empty)).unwrap();
            }
            test.sh(&format!(
                "cd ../home/{repository} && git for-each-ref refs/ralph/{old_id} \
                 --format='create refs/ralph/{new_id}/%(refname:lstrip=3) %(objectname)%0adelete %(refname)' | \
                 git update-ref --stdin"
            ));
        }
        fs::remove_dir_all(recorded).unwrap();
        test
    }

    /// Returns a command that shows the recorded night on the next morning.
    pub(crate) fn night_command(&self, args: &[&str]) -> Command {
        let mut command = self.ralph_command(args);
        command
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("RALPH_TEST_NOW", MORNING_MS.to_string());
        command
    }

    /// Returns the rows that a command shows on a terminal of this width, without the test's own paths.
    pub(crate) fn night_rows(&self, args: &[&str], columns: u16) -> String {
        let (_, bytes) = Screen::start(self.night_command(args), columns).end();
        self.without_root(&rows(&bytes).join("\n"))
    }

    /// Replaces the path of the test's directory, so that a text can be compared with a snapshot.
    pub(crate) fn without_root(&self, text: &str) -> String {
        text.replace(&self.root().display().to_string(), "/test")
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_recorded_night_has_what_views_must_show() {
    let test = Test::night();
    let mut iterations = 0;
    for (name, status, count) in [
        ("retries", "crashed", 12),
        ("links", "blocked", 18),
        ("totals", "done", 30),
    ] {
        let shown = test.status(name);
        assert_eq!(shown["status"], status, "{name}");
        assert_eq!(shown["current_iteration"], count, "{name}");
        iterations += count;
        let patch = test.ralph(&["diff", name]).exits(0).out;
        assert!(patch.contains("diff --git "), "{name}: {patch}");
    }
    assert_eq!(iterations, 60);
    assert!(!test.events("links", "rechecked").is_empty());
    let limit = &test.events("totals", "ended")[11]["report"];
    assert_eq!(limit["reason"]["kind"], "usage-limit", "{limit}");
}
