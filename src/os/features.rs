//! What this kernel can do, found out by trying it and never by its version.

use std::io;

/// Whether orphans can be adopted. Asking makes this process adopt its own.
pub fn subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?);
    #[cfg(not(target_os = "linux"))]
    no()
}

/// Whether there are handles on processes, which cannot come to mean another one.
pub fn pidfd() -> io::Result<()> {
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
    no()
}

/// Which version of Landlock there is.
pub fn landlock() -> io::Result<u32> {
    #[cfg(target_os = "linux")]
    {
        const VERSION: libc::c_long = 1;
        let none = std::ptr::null::<libc::c_void>();
        // SAFETY: without attributes and with this flag the call only returns a number.
        match unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, VERSION) } {
            version @ 1.. => Ok(version as u32),
            _ => Err(io::Error::last_os_error()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    no()
}

/// Whether a process may wall itself in without being root. A child tries it, and is gone afterwards. Some
/// systems grant the namespace but no rights in it, so one that needs them is tried as well.
pub fn user_namespaces() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, WaitOptions, waitpid};
        // SAFETY: the child makes only async-signal-safe calls, and leaves by one.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let refused = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS]
                    .iter()
                    .any(|kind| libc::unshare(*kind) != 0);
                libc::_exit(if refused {
                    *libc::__errno_location()
                } else {
                    0
                });
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
            None => Err(io::Error::other("the one who tried it was killed")),
        }
    }
    #[cfg(not(target_os = "linux"))]
    no()
}

#[cfg(not(target_os = "linux"))]
fn no<T>() -> io::Result<T> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn asking_changes_nothing_in_this_process() {
        let name = |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let before = (name("user"), name("mnt"));
        let _ = user_namespaces();
        let _ = landlock();
        assert_eq!((name("user"), name("mnt")), before);
    }
}
