//! Restricts a command to some files with Landlock. The rules are built before the fork; between
//! fork and exec, two system calls apply them.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// What a command may do with a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Read and execute.
    Read,
    /// Everything.
    Write,
}

/// The oldest version that can refuse to truncate a file. Older ones also refuse every rename
/// between two directories.
#[cfg(target_os = "linux")]
const OLDEST: landlock::ABI = landlock::ABI::V3;
/// The version whose further restrictions are used where the kernel has them: signals and abstract
/// sockets end at the sandbox.
#[cfg(target_os = "linux")]
const NEWEST: landlock::ABI = landlock::ABI::V6;

/// Rules that a process can apply to itself.
#[derive(Debug)]
pub(crate) struct Ruleset {
    #[cfg(target_os = "linux")]
    fd: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Ruleset {
    /// Builds rules that grant access to these paths, and to no other. Skips paths that cannot be
    /// opened.
    pub(crate) fn new(grants: &[(PathBuf, Grant)]) -> io::Result<Self> {
        use landlock::{
            Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd,
            RulesetAttr as _, RulesetCreatedAttr as _, Scope,
        };
        let build = || -> Result<Option<std::os::fd::OwnedFd>, landlock::RulesetError> {
            let mut rules = landlock::Ruleset::default()
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_all(OLDEST))?
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(NEWEST))?
                .scope(Scope::from_all(NEWEST))?
                .create()?;
            for (path, grant) in grants {
                let Ok(fd) = PathFd::new(path) else {
                    continue;
                };
                let all = match grant {
                    Grant::Read => AccessFs::from_read(NEWEST),
                    Grant::Write => AccessFs::from_all(NEWEST),
                };
                let access = if path.is_dir() {
                    all
                } else {
                    all & AccessFs::from_file(NEWEST)
                };
                rules = rules.add_rule(PathBeneath::new(fd, access))?;
            }
            Ok(rules.into())
        };
        let fd = build().map_err(io::Error::other)?;
        let fd = fd.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(Self { fd })
    }

    /// Makes the command apply the rules to itself before it executes its program.
    pub(crate) fn restrict(self: &Arc<Self>, command: &mut Command) {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::process::CommandExt as _;
        let rules = Arc::clone(self);
        // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                let fd = rules.fd.as_raw_fd();
                if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::syscall(libc::SYS_landlock_restrict_self, fd, 0) == 0
                {
                    return Ok(());
                }
                Err(io::Error::last_os_error())
            });
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Ruleset {
    pub(crate) fn new(_: &[(PathBuf, Grant)]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[expect(clippy::unused_self, reason = "the same interface as on Linux")]
    pub(crate) fn restrict(self: &Arc<Self>, _: &mut Command) {}
}
