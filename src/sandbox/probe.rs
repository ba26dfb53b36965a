//! Tries out a sandbox before the first iteration, so that a missing one is an error and not a
//! surprise.

use super::{Confinement, SandboxError, SandboxRequest};
use crate::engine::plan::Sandbox;
use crate::os::program;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why an agent cannot be confined here, and what to do instead.
#[derive(Debug)]
pub(crate) struct ProbeFailure {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Starts a shell in the sandbox, which must be able to write to the workspace.
pub(crate) fn probe(request: &SandboxRequest<'_>) -> Result<(), ProbeFailure> {
    let confinement =
        Confinement::prepare(request).map_err(|error| failure(request.kind, &error))?;
    let shell = program::shell().to_string_lossy().into_owned();
    let words = confinement.wrap(vec![shell, "-c".into(), "test -w .".into()]);
    let [program, args @ ..] = &words[..] else {
        unreachable!("the shell is never missing");
    };
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(request.workspace)
        .stdin(Stdio::null());
    confinement.restrict(&mut command);
    let done = command
        .output()
        .map_err(|error| failure(request.kind, &SandboxError::Io(error)))?;
    if done.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&done.stderr);
    let line = text.lines().find(|line| !line.trim().is_empty());
    Err(match line {
        Some(line) => {
            let line = line.trim_start_matches("bwrap: ").trim();
            ProbeFailure {
                message: format!("{} cannot create a sandbox here: {line}", request.kind),
                hint: alternative(request.kind, FIX_NAMESPACES),
            }
        }
        None => unwritable(request.workspace),
    })
}

/// How to allow what bwrap needs.
const FIX_NAMESPACES: &str = "allow unprivileged user namespaces (in a container: its seccomp profile; on Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0)";

fn failure(kind: Sandbox, error: &SandboxError) -> ProbeFailure {
    let hint = match error {
        SandboxError::NoBwrap => alternative(kind, "install it (apt install bubblewrap)"),
        SandboxError::NoLandlock(_) => "use Linux 6.2 or later, or --sandbox=bwrap".to_owned(),
        SandboxError::HiddenInside(..) => {
            "use --sandbox=bwrap, or work in a directory without it".to_owned()
        }
        SandboxError::NotUtf8(_) => "rename it".to_owned(),
        SandboxError::Io(_) => alternative(kind, FIX_NAMESPACES),
    };
    ProbeFailure {
        message: error.to_string(),
        hint,
    }
}

/// Adds the other kind of sandbox to a hint, if it works here.
fn alternative(kind: Sandbox, hint: &str) -> String {
    match kind {
        Sandbox::Bwrap if crate::os::landlock::Ruleset::new(&[]).is_ok() => {
            format!("{hint}, or use --sandbox=landlock")
        }
        _ => hint.to_owned(),
    }
}

fn unwritable(workspace: &Path) -> ProbeFailure {
    use std::os::unix::fs::MetadataExt as _;
    let owner = fs::metadata(workspace).map_or(0, |data| data.uid());
    ProbeFailure {
        message: format!(
            "the agent could not write to {} in the sandbox: it belongs to the user {owner}",
            workspace.display()
        ),
        hint: "in a sandbox, root has no rights over other users' files: run ralph as the owner, or change the owner with chown -R".to_owned(),
    }
}
