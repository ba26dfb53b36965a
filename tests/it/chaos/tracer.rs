//! Runs a command under ptrace, and kills its whole process tree at the nth system call, or makes
//! that call fail.
//!
//! ```text
//! let calls = tracer::run(test.command("sh"), &["ralph", "ls"], Counted::Changing, Fault::None).calls;
//! for n in 1..=calls {
//!     tracer::run(test.command("sh"), &["ralph", "ls"], Counted::Changing, Fault::KillAt(n));
//!     // … nothing is broken
//! }
//! ```
//!
//! Every process that the command starts is followed, and the calls of all of them are counted
//! together. A library that is preloaded would see fewer: programs make system calls without libc.
//! What two processes do at the same time is counted in either order, so the nth call is not always
//! the same one; a test must hold wherever the fault occurs.
//!
//! Tests that use this belong in a module `needs_ptrace`, because some machines forbid tracing.

mod calls;

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

pub(crate) use calls::Counted;

/// What happens at the nth call, counted from 1.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    None,
    /// Kills all processes before the call takes effect.
    KillAt(u64),
    /// The call takes no effect and returns this error.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "needs its registers")
    )]
    FailAt(u64, Errno),
}

/// What a traced command did.
#[derive(Debug)]
pub(crate) struct Traced {
    /// The number of counted calls until its end.
    pub(crate) calls: u64,
    /// The number of the call that was struck, if one was, as the kernel numbers it.
    pub(crate) struck: Option<u64>,
    /// The command's exit code; `None` if it was killed.
    pub(crate) code: Option<i32>,
}

/// Waits until the tracer is ready, then becomes the command.
const START: &str = "read go; exec \"$@\" </dev/null";

#[expect(
    clippy::zombie_processes,
    reason = "the loop at the end waits for every process"
)]
/// Runs `argv` under `shell`, which is a command for `sh` with the environment and directory to use,
/// until every process it started has exited.
pub(crate) fn run(mut shell: Command, argv: &[&str], counted: Counted, fault: Fault) -> Traced {
    let mut child = shell
        .args(["-c", START, "sh"])
        .args(argv)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh starts");
    let root = Pid::from_raw(child.id() as i32);
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(root, options).expect("ptrace is allowed");
    ptrace::interrupt(root).expect("a traced process stops");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut tracer = Tracer {
        counted,
        fault,
        processes: BTreeSet::from([root]),
        failing: BTreeSet::new(),
        is_started: false,
        is_over: false,
        traced: Traced {
            calls: 0,
            struck: None,
            code: None,
        },
    };
    // Only the processes that this thread started or traces: other tests have children as well.
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    loop {
        match waitpid(None, Some(flags)) {
            Ok(WaitStatus::Exited(pid, code)) => {
                tracer.processes.remove(&pid);
                if pid == root {
                    tracer.traced.code = Some(code);
                }
            }
            Ok(WaitStatus::Signaled(pid, ..)) => {
                tracer.processes.remove(&pid);
            }
            Ok(status) => tracer.stopped(root, status),
            Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return tracer.traced,
            Err(error) => panic!("cannot wait: {error}"),
        }
    }
}

struct Tracer {
    counted: Counted,
    fault: Fault,
    processes: BTreeSet<Pid>,
    /// The processes that are inside a call which must fail.
    failing: BTreeSet<Pid>,
    /// Whether the shell has become the command.
    is_started: bool,
    /// Whether everything is being killed.
    is_over: bool,
    traced: Traced,
}

impl Tracer {
    fn stopped(&mut self, root: Pid, status: WaitStatus) {
        let Some(pid) = status.pid() else { return };
        self.processes.insert(pid);
        if self.is_over {
            let _ = kill(pid, Signal::SIGKILL);
            return;
        }
        let mut signal = None;
        match status {
            WaitStatus::PtraceSyscall(_) => self.at_call(pid),
            WaitStatus::PtraceEvent(_, _, event)
                if event == ptrace::Event::PTRACE_EVENT_EXEC as i32 =>
            {
                self.is_started |= pid == root;
            }
            WaitStatus::Stopped(_, received) => signal = Some(received),
            _ => {}
        }
        if !self.is_over {
            // It may have been killed in the meantime.
            let _ = ptrace::syscall(pid, signal);
        }
    }

    /// Handles a stop at the start or the end of a system call.
    fn at_call(&mut self, pid: Pid) {
        /// A stop before the call, in the kernel's structure.
        const ENTRY: u8 = 1;
        let Ok(info) = ptrace::syscall_info(pid) else {
            return;
        };
        if info.op != ENTRY {
            if self.failing.remove(&pid)
                && let Fault::FailAt(_, error) = self.fault
            {
                registers::set_result(pid, error);
            }
            return;
        }
        let Some(call) = registers::call(pid).filter(|_| self.is_started) else {
            return;
        };
        if !self.counted.counts(pid, call) {
            return;
        }
        let number = call.number;
        self.traced.calls += 1;
        match self.fault {
            Fault::KillAt(n) if n == self.traced.calls => {
                self.traced.struck = Some(number);
                self.is_over = true;
                for pid in &self.processes {
                    let _ = kill(*pid, Signal::SIGKILL);
                }
            }
            Fault::FailAt(n, _) if n == self.traced.calls => {
                self.traced.struck = Some(number);
                registers::skip_call(pid);
                self.failing.insert(pid);
            }
            _ => {}
        }
    }
}

/// The registers with the number and the result of a system call.
#[cfg(target_arch = "x86_64")]
mod registers {
    use super::calls::Call;
    use super::{Errno, Pid, ptrace};

    pub(super) fn call(pid: Pid) -> Option<Call> {
        let registers = ptrace::getregs(pid).ok()?;
        Some(Call {
            number: registers.orig_rax,
            arguments: [registers.rdi, registers.rsi, registers.rdx],
        })
    }

    /// Replaces the call with one that does not exist.
    pub(super) fn skip_call(pid: Pid) {
        if let Ok(mut registers) = ptrace::getregs(pid) {
            registers.orig_rax = u64::MAX;
            let _ = ptrace::setregs(pid, registers);
        }
    }

    pub(super) fn set_result(pid: Pid, error: Errno) {
        if let Ok(mut registers) = ptrace::getregs(pid) {
            registers.rax = i64::from(-(error as i32)) as u64;
            let _ = ptrace::setregs(pid, registers);
        }
    }
}

/// On other processors calls are counted, but none can be made to fail.
#[cfg(not(target_arch = "x86_64"))]
mod registers {
    use super::calls::Call;
    use super::{Errno, Pid, ptrace};

    pub(super) fn call(pid: Pid) -> Option<Call> {
        let registers = ptrace::getregs(pid).ok()?.regs;
        Some(Call {
            number: registers[8],
            arguments: [registers[0], registers[1], registers[2]],
        })
    }

    pub(super) fn skip_call(_: Pid) {}

    pub(super) fn set_result(_: Pid, _: Errno) {}
}
