//! Carries out a layout with bubblewrap: mounts in a namespace of the agent's own. A process
//! namespace makes the kernel kill everything in it once its first process is gone.

use super::SandboxError;
use super::layout::{Access, Layout};
use std::fs;
use std::path::Path;

/// The user and group ID that root has inside, without an account behind it. Outside, its files still
/// belong to root.
const INNER_ID: &str = "65534";

/// Returns bwrap's command line, up to the command that it shall run.
pub(super) fn arguments(
    program: &Path,
    layout: &Layout,
    workspace: &Path,
) -> Result<Vec<String>, SandboxError> {
    let mut args = vec![text(program)?];
    args.extend(["--unshare-pid", "--unshare-ipc", "--die-with-parent"].map(str::to_owned));
    if rustix::process::geteuid().is_root() {
        // Otherwise root would keep the right to mount, and could undo what hides a directory. With
        // another ID inside, the agent can still create a sandbox of its own.
        args.extend(["--unshare-user", "--uid", INNER_ID, "--gid", INNER_ID].map(str::to_owned));
        args.extend(["--cap-drop", "ALL"].map(str::to_owned));
    }
    let mut sealed = Vec::new();
    for (path, access) in layout.rules() {
        let here = text(path)?;
        let is_dir = path.is_dir();
        let mount: &[&str] = match access {
            Access::Hidden if is_dir => {
                sealed.push(here.clone());
                &["--tmpfs", &here]
            }
            Access::Hidden => &["--ro-bind", "/dev/null", &here],
            Access::Private => &["--perms", "1777", "--tmpfs", &here],
            Access::Read => &["--ro-bind", &here, &here],
            Access::Write => &["--bind", &here, &here],
        };
        args.extend(mount.iter().map(|arg| (*arg).to_owned()));
        if path == Path::new("/") {
            let fresh = ["--dev", "/dev", "--proc", "/proc"];
            args.extend(fresh.map(str::to_owned));
        }
    }
    for path in sealed {
        args.extend(["--remount-ro".to_owned(), path]);
    }
    let dir = fs::canonicalize(workspace).map_err(SandboxError::Io)?;
    args.extend(["--chdir".to_owned(), text(&dir)?, "--".to_owned()]);
    Ok(args)
}

fn text(path: &Path) -> Result<String, SandboxError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| SandboxError::NotUtf8(path.to_owned()))
}
