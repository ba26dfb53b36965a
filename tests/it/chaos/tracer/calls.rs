//! Decides which system calls count, so that every moment that matters can be tried.
//!
//! A process tree of one loop makes thousands of system calls. Most of them change nothing that
//! outlasts the process: they read, allocate memory, or wait. The world after a kill before such a
//! call is the world after a kill before the next call that does change something, so only the
//! latter must be tried. A call that is not known to be quiet counts.

use nix::unistd::Pid;

/// A system call that is about to happen.
#[derive(Clone, Copy)]
pub(super) struct Call {
    /// The call's number, as the kernel numbers it.
    pub(super) number: u64,
    /// The first arguments.
    pub(super) arguments: [u64; 3],
}

/// The calls that count.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Counted {
    All,
    /// Calls that can change something which another process can see: files, locks, processes,
    /// signals, and messages in pipes and sockets.
    Changing,
    /// Calls that change files: they fail if a disk is full or broken.
    Storing,
}

impl Counted {
    /// Returns whether `call` counts.
    pub(super) fn counts(self, pid: Pid, call: Call) -> bool {
        let number = call.number as i64;
        match self {
            Self::All => true,
            Self::Changing => !is_quiet(call),
            Self::Storing if WRITING.contains(&number) => {
                let file = format!("/proc/{pid}/fd/{}", call.arguments[0]);
                std::fs::metadata(file).is_ok_and(|file| file.is_file())
            }
            Self::Storing => STORING.contains(&number) && !is_quiet(call),
        }
    }
}

/// Returns whether a call changes nothing that another process can see.
fn is_quiet(call: Call) -> bool {
    let number = call.number as i64;
    let [_, second, third] = call.arguments;
    if let Some(flags) = open_flags(number, second, third) {
        let changing = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
        return flags & changing == libc::O_RDONLY;
    }
    match number {
        libc::SYS_fcntl => !matches!(
            second as i32,
            libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW
        ),
        libc::SYS_ioctl => matches!(
            second as libc::Ioctl,
            libc::TCGETS | libc::TIOCGWINSZ | libc::FIONBIO | libc::FIONREAD
        ),
        // Without a new limit, it returns the old one.
        libc::SYS_prlimit64 => third == 0,
        _ => QUIET.contains(&number),
    }
}

/// Returns the flags of a call that opens a file.
fn open_flags(number: i64, second: u64, third: u64) -> Option<i32> {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_open {
        return Some(second as i32);
    }
    let _ = second;
    (number == libc::SYS_openat).then_some(third as i32)
}

/// Calls that read, that wait, or that change only the process's own memory, descriptors, signal
/// handlers and working directory.
const QUIET: &[i64] = &[
    // Reading.
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_fadvise64,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_getrlimit,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    // Waiting. A child that is waited for has exited before.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_restart_syscall,
    // The process's own memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    // Its signal handlers.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_sigaltstack,
    // Its descriptors. New pipes, sockets and watches are empty; the kill itself closes everything.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_socket,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_pidfd_open,
    // Its directory and the mode of its next files.
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_umask,
    // The older forms of the same calls.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pipe,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getpgrp,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
];

/// Calls that write to a descriptor, which may be a pipe or a terminal as well.
const WRITING: &[i64] = &[
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_sendfile,
];

/// Other calls that change files.
const STORING: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_copy_file_range,
    libc::SYS_fallocate,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
];
