//! `ralph demo`: a whole loop on a scripted agent, with a real repository, a real bug and real checks.

use super::run::{go, intent_in};
use crate::cli::{Verb, Words};
use crate::config::Stack;
use crate::lifecycle::failure::Failure;
use crate::store::Home;
use crate::ui::say;
use clap::Parser;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROJECT: [(&str, &str, u32); 5] = [
    (
        "total.sh",
        include_str!("../../presets/demo/total.sh"),
        0o755,
    ),
    ("test.sh", include_str!("../../presets/demo/test.sh"), 0o755),
    ("lint.sh", include_str!("../../presets/demo/lint.sh"), 0o755),
    (
        "PROMPT.md",
        include_str!("../../presets/demo/task.md"),
        0o644,
    ),
    (
        "../demo.script",
        include_str!("../../presets/demo/demo.script"),
        0o644,
    ),
];

pub(crate) fn demo(keep: bool) -> Result<i32, Failure> {
    let place = Place::make(keep).map_err(Failure::broken)?;
    let project = place.root.join("invoices");
    fs::create_dir(&project).map_err(Failure::broken)?;
    for (name, text, mode) in PROJECT {
        let path = project.join(name);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .map_err(Failure::broken)?;
    }
    say("A small project with a bug, two checks, and a scripted agent that needs three tries.\n\n");
    for words in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "an invoice with a bug"],
    ] {
        git(&project, words)?;
    }
    let typed =
        "ralph run --name demo --check ./test.sh --check ./lint.sh --agent script:../demo.script";
    say(&format!("$ {typed}\n\n"));
    let Ok(Words {
        verb: Verb::Run(mut words),
    }) = Words::try_parse_from(typed.split(' '))
    else {
        return Err(Failure::broken("the demonstration's own words are wrong"));
    };
    words.no_next = true;
    let project = fs::canonicalize(project).map_err(Failure::broken)?;
    let Some(intent) = intent_in(project.clone(), Stack::defaults(), &words)? else {
        return Ok(0);
    };
    let code = go(&Home::at(place.root.join("state")), &words, intent)?;
    if keep {
        let state = place.root.join("state");
        let look = format!(
            "cd '{}' && export RALPH_STATE_DIR='{}'",
            project.display(),
            state.display()
        );
        say(&format!(
            "\nkept; to look at it: {look} && ralph status demo\n"
        ));
    } else {
        say("\nThis was a demonstration; its directory is gone again (--keep keeps it).\n");
    }
    Ok(code)
}

fn git(project: &Path, words: &[&str]) -> Result<(), Failure> {
    let identity = [
        "-c",
        "user.name=ralph demo",
        "-c",
        "user.email=demo@localhost",
        "-c",
        "commit.gpgsign=false",
    ];
    let done = Command::new("git")
        .args(identity)
        .args(words)
        .current_dir(project)
        .stdin(Stdio::null())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::broken(format!(
            "git {} failed: {status}",
            words.join(" ")
        ))),
        Err(error) => Err(Failure::usage(
            format!("cannot run git: {error}"),
            "the demo needs git: install it",
        )),
    }
}

/// A directory that goes away with its value.
struct Place {
    root: PathBuf,
    keep: bool,
}

impl Place {
    fn make(keep: bool) -> std::io::Result<Self> {
        let root = std::env::temp_dir().join(format!("ralph-demo-{}", std::process::id()));
        fs::create_dir(&root)?;
        Ok(Self { root, keep })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}
