//! The few system calls that Rust cannot check: the only unsafe code of the program.
#![expect(unsafe_code, reason = "fork, pre_exec and signal dispositions have no safe interface")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// On which side of a fork one is.
pub enum Side {
    /// The new process.
    Child,
    /// The old one, and the new one's pid.
    Parent(i32),
}

/// Forks this process. Only a program with a single thread may do so, and only there can it go wrong:
/// the child has the same memory, and no lock is held by a thread that it lacks.
pub fn fork() -> io::Result<Side> {
    debug_assert_eq!(threads(), 1, "fork needs a single thread");
    // SAFETY: there is one thread (above), so the child's copy of every lock and buffer is consistent.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(pid)),
    }
}

/// Makes the command the leader of a session, and so of a group, of its own, with no terminal, and with
/// the signal dispositions of a fresh process.
pub fn in_own_session(command: &mut Command) {
    // SAFETY: between fork and exec only two async-signal-safe calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGTTOU, libc::SIG_DFL);
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

/// Lets this process write to a terminal whose foreground belongs to another group.
pub fn ignore_terminal_stop() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}
