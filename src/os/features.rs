//! Probes kernel features by using them rather than by comparing versions.

use std::io;

/// Makes this process a child subreaper: orphaned descendants become its children.
pub(crate) fn subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?);
    #[cfg(not(target_os = "linux"))]
    unsupported()
}

/// Checks whether the kernel supports pidfds. Unlike a process ID, a pidfd is never reused for
/// another process.
pub(crate) fn pidfd() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let handle = rustix::process::pidfd_open(
            rustix::process::getpid(),
            rustix::process::PidfdFlags::empty(),
        )?;
        drop(handle);
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    unsupported()
}

/// Returns the version of the Landlock ABI; an error if the kernel does not support Landlock.
pub(crate) fn landlock() -> io::Result<u32> {
    #[cfg(target_os = "linux")]
    {
        const VERSION: libc::c_long = 1;
        let none = std::ptr::null::<libc::c_void>();
        // SAFETY: without attributes and with this flag, the call only returns a number.
        match unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, VERSION) } {
            version @ 1.. => Ok(version as u32),
            _ => Err(io::Error::last_os_error()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    unsupported()
}

/// Checks whether an unprivileged process can create a user namespace. A short-lived child process
/// tries it, because this process must not change. The child also creates a mount namespace,
/// because some systems permit a user namespace but grant no capabilities in it.
pub(crate) fn user_namespaces() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, WaitOptions, waitpid};
        // SAFETY: the child makes only async-signal-safe calls, `_exit` included.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let failed = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS]
                    .iter()
                    .any(|flag| libc::unshare(*flag) != 0);
                libc::_exit(if failed { *libc::__errno_location() } else { 0 });
            }
            pid
        };
        let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 0) else {
            return Err(io::Error::last_os_error());
        };
        let status = loop {
            match waitpid(Some(pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => break status,
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        match status.exit_status() {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::Error::other("the probing process was killed")),
        }
    }
    #[cfg(not(target_os = "linux"))]
    unsupported()
}

#[cfg(not(target_os = "linux"))]
fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn probing_changes_no_namespace_of_this_process() {
        let name = |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let before = (name("user"), name("mnt"));
        let _ = user_namespaces();
        let _ = landlock();
        assert_eq!((name("user"), name("mnt")), before);
    }
}
