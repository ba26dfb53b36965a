//! `ralph demo`: runs a loop with a scripted agent on a small project with a bug and two checks.

use super::run::{resolve_in, start};
use super::trust::consent::TrustStatus;
use super::workspace::ChosenWorkspace;
use crate::cli::{self, Cli};
use crate::config::LayerStack;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::store::StateDir;
use crate::ui::print::print_message;
use clap::Parser;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

/// The files of the demo project. Each has a path relative to the project, a text and a mode.
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

pub(crate) fn demo(keep: bool) -> Result<ExitCode, CommandError> {
    let failed =
        |error: io::Error| CommandError::broken(format!("cannot set up the demo project: {error}"));
    let demo = DemoDir::create(keep).map_err(failed)?;
    let project = demo.root.join("invoices");
    fs::create_dir(&project).map_err(failed)?;
    for (name, text, mode) in PROJECT {
        let path = project.join(name);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .map_err(failed)?;
    }
    print_message(
        "A small project with a bug, two checks, and a scripted agent that needs three tries.\n\n",
    );
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "an invoice with a bug"],
    ] {
        git(&project, args)?;
    }
    let command_line =
        "ralph run --name demo --check ./test.sh --check ./lint.sh --agent script:../demo.script";
    print_message(&format!("$ {command_line}\n\n"));
    let Ok(Cli {
        command: cli::Command::Run(mut args),
    }) = Cli::try_parse_from(command_line.split(' '))
    else {
        return Err(CommandError::broken("the demo's command line is invalid"));
    };
    args.hide_next_step = true;
    let project = fs::canonicalize(project).map_err(failed)?;
    let workspace = ChosenWorkspace {
        path: project.clone(),
        current_dir: PathBuf::new(),
    };
    let stack = LayerStack::defaults();
    let Some(resolved) = resolve_in(workspace, stack, TrustStatus::Trusted, &args)? else {
        return Ok(ExitCode::Success);
    };
    let state_dir = demo.root.join("state");
    let code = start(&StateDir::new(state_dir.clone()), &args, resolved)?;
    if keep {
        print_message(&format!(
            "\nThe demo's directory was kept. To look at it:\n  cd '{}'\n  export RALPH_STATE_DIR='{}'\n  ralph status demo\n",
            project.display(),
            state_dir.display()
        ));
    } else {
        print_message("\nThe demo's directory was removed; add --keep to keep it.\n");
    }
    Ok(code)
}

fn git(project: &Path, args: &[&str]) -> Result<(), CommandError> {
    let identity = [
        "-c",
        "user.name=ralph demo",
        "-c",
        "user.email=demo@localhost",
        "-c",
        "commit.gpgsign=false",
    ];
    let status = Command::new("git")
        .args(identity)
        .args(args)
        .current_dir(project)
        .stdin(Stdio::null())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::broken(format!(
            "git {} failed: {status}",
            args.join(" ")
        ))),
        Err(error) => Err(CommandError::usage(
            format!("cannot run git: {error}"),
            "the demo needs git: install it, or check your PATH",
        )),
    }
}

/// A temporary directory that is removed on drop unless `keep` is set.
struct DemoDir {
    root: PathBuf,
    keep: bool,
}

impl DemoDir {
    fn create(keep: bool) -> std::io::Result<Self> {
        let root = std::env::temp_dir().join(format!("ralph-demo-{}", std::process::id()));
        fs::create_dir(&root)?;
        Ok(Self { root, keep })
    }
}

impl Drop for DemoDir {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}
