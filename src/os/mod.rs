//! Wraps the system calls that have no safe Rust interface: the only unsafe code in the crate.
#![expect(
    unsafe_code,
    reason = "fork, pre_exec, signal dispositions and madvise have no safe interface"
)]

pub(crate) mod boot;
pub(crate) mod disk;
#[cfg(feature = "cli")]
pub(crate) mod features;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "Landlock is a part of Linux")
)]
pub(crate) mod landlock;
pub(crate) mod memory;
#[cfg(target_os = "linux")]
pub(crate) mod namespace;
pub(crate) mod program;
pub(crate) mod regular_file;
#[cfg(target_os = "linux")]
pub(crate) mod spawn;

#[cfg(feature = "cli")]
use std::ffi::CString;
use std::io;
#[cfg(feature = "cli")]
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
#[cfg(feature = "cli")]
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The process in which [`fork`] returned.
pub(crate) enum ForkResult {
    Child,
    /// The parent process, with the child's process ID.
    Parent(i32),
}

/// Forks this process. Call this only while there is a single thread: the child gets a copy of
/// every lock, but no other thread that could release a lock.
pub(crate) fn fork() -> io::Result<ForkResult> {
    debug_assert_eq!(thread_count(), 1, "fork needs a single thread");
    // SAFETY: there is one thread (above), so the child's copy of every lock and buffer is
    // consistent.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(ForkResult::Child),
        pid => Ok(ForkResult::Parent(pid)),
    }
}

/// Creates a named pipe that only the user can open.
#[cfg(feature = "cli")]
pub(crate) fn make_fifo(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a valid C string, which the call does not keep.
    match unsafe { libc::mkfifo(path.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the command start as the leader of a new session and process group, without a controlling
/// terminal and with default signal dispositions.
pub(crate) fn set_new_session(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are made, and nothing is
    // allocated.
    unsafe {
        command.pre_exec(|| {
            for signal in IGNORED_SIGNALS {
                libc::signal(signal, libc::SIG_DFL);
            }
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

/// Makes the command start like [`set_new_session`], but with its standard input as the controlling
/// terminal.
pub(crate) fn set_controlling_terminal(command: &mut Command) {
    set_new_session(command);
    // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?));
    }
}

/// Makes the kernel kill the command when the thread that started it ends. The command is then
/// never unsupervised. Has an effect on Linux only.
pub(crate) fn set_parent_death_signal(command: &mut Command) {
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
    unsafe {
        use rustix::process::{Signal, set_parent_process_death_signal};
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Sets the limit of a resource that Linux ignores, for the command and everything it will start.
/// Has an effect on Linux only.
pub(crate) fn set_ignored_limit(command: &mut Command, limit: u64) {
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
    unsafe {
        use rustix::process::{Resource, Rlimit, setrlimit};
        command.pre_exec(move || {
            let value = Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            };
            // Without the limit, the command's session and descendants identify its processes.
            let _ = setrlimit(Resource::Locks, value);
            Ok(())
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (command, limit);
}

/// Sets close-on-exec on every open file except the standard streams. Files inherited from the
/// parent may lack the flag, and programs started later would inherit them.
pub(crate) fn set_cloexec_on_open_files() {
    for entry in std::fs::read_dir("/dev/fd").into_iter().flatten().flatten() {
        let fd = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok());
        if let Some(fd) = fd.filter(|fd| *fd > libc::STDERR_FILENO) {
            // SAFETY: this sets a flag of a descriptor; a closed one is refused.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Signals that would stop or kill a runner for reading or writing: from a terminal's background
/// process group, or beyond a file size limit. The runner handles the system call's error instead.
/// SIGTSTP (Ctrl-Z) is included because it would stop the warden but not the agent, which has its
/// own session.
const IGNORED_SIGNALS: [i32; 4] = [libc::SIGTTIN, libc::SIGTTOU, libc::SIGXFSZ, libc::SIGTSTP];

/// Ignores the signals that would stop or kill a runner for its reads and writes, regardless of the
/// dispositions it inherited.
pub(crate) fn ignore_signals() {
    for signal in IGNORED_SIGNALS {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Signals that a runner handles. Without a handler, they would kill the process.
const TERMINATION_SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1];

/// Blocks the signals that a runner handles. No signal is then lost or fatal between a fork and the
/// installation of handlers in both processes.
pub(crate) fn block_signals() {
    set_signal_mask(&TERMINATION_SIGNALS);
}

/// Unblocks all signals, including those that the parent process had blocked.
pub(crate) fn unblock_signals() {
    set_signal_mask(&[]);
}

/// Blocks termination signals until this value is dropped, so that an operation can be rolled back
/// before the process exits.
pub(crate) struct BlockedSignals {
    signals: [i32; 4],
}

impl BlockedSignals {
    /// Blocks the signals. Do not use this in the library: the host program controls its own
    /// signals.
    pub(crate) fn new() -> Self {
        block_signals();
        Self {
            signals: TERMINATION_SIGNALS,
        }
    }

    /// Returns whether a signal is pending that will kill this process once it is unblocked.
    pub(crate) fn has_pending(&self) -> bool {
        // SAFETY: the set is initialized before it is used, and reading a disposition changes none.
        unsafe {
            let mut pending = std::mem::zeroed();
            libc::sigpending(&raw mut pending);
            self.signals.iter().any(|signal| {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(*signal, std::ptr::null(), &raw mut action);
                // A signal that the parent process set to be ignored, as `nohup` does, still
                // becomes pending.
                libc::sigismember(&raw const pending, *signal) == 1
                    && action.sa_sigaction != libc::SIG_IGN
            })
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        unblock_signals();
    }
}

/// Adds one to `count` whenever the signal arrives. Replaces the signal's default disposition.
pub(crate) fn count_signal(signal: i32, count: Arc<AtomicUsize>) -> io::Result<()> {
    let action = move || {
        count.fetch_add(1, Ordering::Relaxed);
    };
    // SAFETY: the action is one atomic addition, which is async-signal-safe.
    unsafe { signal_hook::low_level::register(signal, action) }.map(drop)
}

fn set_signal_mask(signals: &[i32]) {
    // SAFETY: the set is initialized before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

#[cfg(target_os = "linux")]
/// Opens the null device for reading.
pub(crate) fn open_null() -> std::io::Result<std::fs::File> {
    std::fs::File::open("/dev/null")
}

/// Makes the creation and renaming of a directory's entries durable.
pub(crate) fn sync_dir(path: &std::path::Path) -> std::io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

/// Returns 8 random bytes.
pub(crate) fn random_bytes() -> std::io::Result<[u8; 8]> {
    use std::io::Read as _;
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
