//! The few system calls that Rust cannot check: the only unsafe code of the program.
#![expect(
    unsafe_code,
    reason = "fork, pre_exec, signal dispositions and madvise have no safe interface"
)]

pub mod disk;
pub mod features;
pub mod memory;
pub mod program;
pub mod regular;

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
    // SAFETY: between fork and exec only async-signal-safe calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            for signal in IGNORED {
                libc::signal(signal, libc::SIG_DFL);
            }
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

/// The same, with its standard input as the terminal of that session.
pub fn on_terminal(command: &mut Command) {
    in_own_session(command);
    // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?));
    }
}

/// Makes the command end when the thread that starts it does: nobody else would look after it.
pub fn dies_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
    unsafe {
        use rustix::process::{Signal, set_parent_process_death_signal};
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Whatever is open here besides the standard streams stays here: no program that is started from now on gets it.
pub fn keep_files() {
    for entry in std::fs::read_dir("/dev/fd").into_iter().flatten().flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok());
        if let Some(number) = number.filter(|number| *number > libc::STDERR_FILENO) {
            // SAFETY: a flag of a descriptor is set; one that is closed by now is refused.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// What would stop or kill a runner for a write, to a terminal whose foreground belongs to another group or
/// beyond a limit of file sizes: the write's own error says enough, and so does a read's. And Ctrl-Z, which would
/// stop the warden and nothing of what it stands for: an agent has no terminal of ours to be stopped from.
const IGNORED: [i32; 4] = [libc::SIGTTIN, libc::SIGTTOU, libc::SIGXFSZ, libc::SIGTSTP];

/// Makes signals behave as a runner needs them, whatever its parent had set.
pub fn settle_signals() {
    for signal in IGNORED {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// What ends a process that does not listen to it, and a runner does.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1];

/// Keeps back what a runner listens to, so that no signal is lost, or deadly, between a fork and the time
/// when both sides listen.
pub fn hold_signals() {
    block(&ENDING);
}

/// Lets through what was kept back, by us or by the parent.
pub fn release_signals() {
    block(&[]);
}

/// Keeps back what would end this process, until it goes away: whoever has begun something can then take it back.
pub struct Held {
    watched: [i32; 4],
}

impl Held {
    /// Keeps it back from now on. Only for a program whose signals are its own.
    pub fn begin() -> Self {
        hold_signals();
        Self { watched: ENDING }
    }

    /// Whether something has come that will end this process.
    pub fn has_any(&self) -> bool {
        // SAFETY: the set is initialised before it is used, and asking for a disposition changes none.
        unsafe {
            let mut pending = std::mem::zeroed();
            libc::sigpending(&raw mut pending);
            self.watched.iter().any(|signal| {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(*signal, std::ptr::null(), &raw mut action);
                // What the parent wanted ignored, as `nohup` does, is kept back all the same.
                libc::sigismember(&raw const pending, *signal) == 1
                    && action.sa_sigaction != libc::SIG_IGN
            })
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        release_signals();
    }
}

fn block(signals: &[i32]) {
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}
