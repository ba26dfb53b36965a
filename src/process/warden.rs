//! The warden: the supervisor's parent process, which kills everything that the supervisor leaves
//! behind.

use super::exemptions::{ExemptSet, Exemptions};
#[cfg(target_os = "linux")]
use super::signals::WARDEN_DIED;
use super::signals::{SignalEvent, SignalListener};
use super::termios::SavedTermios;
use super::tree::{self, Descendants};
use crate::engine::{ExitCode, ProcessExit};
use crate::os;
use crate::os::ForkResult;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getppid, kill_process, setpgid};
use std::io;
use std::time::{Duration, Instant};

/// The supervisor's end, as seen by its warden.
pub(crate) enum SupervisorExit {
    /// The supervisor exited with this code.
    Exited(ExitCode),
    /// The supervisor was killed by a signal.
    Killed {
        signal: i32,
        /// Number of processes the supervisor left behind.
        swept: usize,
        /// The IDs of processes that are still running after SIGKILL.
        survivors: Vec<u32>,
    },
}

/// Forks, runs `supervisor` in the child, and waits until the child and all its descendants have
/// exited. `grace` is the time between SIGTERM and SIGKILL. The child has its own process group, so
/// each signal sent to this process is forwarded and arrives exactly once. If this process is
/// killed, the child receives [`WARDEN_DIED`].
pub(crate) fn run_guarded(
    supervisor: impl FnOnce() -> ExitCode,
    grace: Duration,
    exemptions: &Exemptions,
) -> io::Result<SupervisorExit> {
    tree::become_subreaper();
    // Do not kill children that already exist, as after `sh -c 'daemon & exec ralph run …'`.
    let inherited = tree::children(rustix::process::getpid());
    let warden = rustix::process::getpid();
    let saved_termios = SavedTermios::save();
    os::ignore_signals();
    os::block_signals();
    match os::fork()? {
        ForkResult::Child => {
            setpgid(None, None)?;
            #[cfg(target_os = "linux")]
            rustix::process::set_parent_process_death_signal(Signal::from_named_raw(WARDEN_DIED))?;
            if getppid() != Some(warden) {
                exit(ExitCode::from_signal(Signal::HUP.as_raw()));
            }
            tree::become_subreaper();
            exit(supervisor());
        }
        ForkResult::Parent(pid) => {
            let pid = Pid::from_raw(pid).expect("a child has a pid");
            let exit = wait_for(pid)?;
            if let Some(saved_termios) = saved_termios {
                saved_termios.restore(pid);
            }
            let exempt = || exemptions.current().with_trees(&inherited);
            let (swept, survivors) = sweep(exempt, grace);
            Ok(match exit {
                ProcessExit {
                    code: Some(code), ..
                } => SupervisorExit::Exited(ExitCode::from_code(code)),
                ProcessExit { signal, .. } => SupervisorExit::Killed {
                    signal: signal.unwrap_or(0),
                    swept,
                    survivors,
                },
            })
        }
    }
}

fn exit(code: ExitCode) -> ! {
    std::process::exit(code.code().into())
}

fn wait_for(supervisor: Pid) -> io::Result<ProcessExit> {
    let mut signals = SignalListener::listen_unless_ignored()?;
    let mut exit = None;
    // The warden needs little of its code until the supervisor exits.
    os::memory::release_code_pages();
    loop {
        // Reap before waiting: the supervisor may have exited before the signal handler was
        // installed.
        tree::reap(|pid, how| exit = exit.or((pid == supervisor).then_some(how)));
        if let Some(exit) = exit {
            return Ok(exit);
        }
        let fd = PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN);
        let _ = poll(&mut [fd], None);
        for signal in signals.take() {
            let forward = match signal {
                SignalEvent::ChildExited => continue,
                SignalEvent::Resized => Signal::WINCH,
                SignalEvent::Interrupt => Signal::INT,
                SignalEvent::Terminate => Signal::TERM,
                SignalEvent::HangUp => Signal::HUP,
            };
            let _ = kill_process(supervisor, forward);
        }
    }
}

/// Kills all descendants: SIGTERM, then SIGKILL after `grace`. Returns the number of descendants,
/// and the IDs of those still running at the end.
fn sweep(exempt: impl Fn() -> ExemptSet, grace: Duration) -> (usize, Vec<u32>) {
    let found = tree::descendants(&exempt()).len();
    let started = Instant::now();
    if found > 0 {
        tree::signal_all(&exempt(), Signal::TERM);
    }
    loop {
        let no_children = tree::reap(|_, _| {});
        let exempt = exempt();
        let Descendants {
            found: left,
            has_exempt,
            ..
        } = tree::scan(&exempt);
        // A process that exits during the scan hides its children. Unless there are exempt
        // processes, only the kernel's "no children" is reliable.
        let is_certain = no_children || has_exempt;
        if left.is_empty() && is_certain || started.elapsed() > grace * 7 {
            return (
                found,
                left.into_iter()
                    .map(|pid| pid.as_raw_nonzero().get() as u32)
                    .collect(),
            );
        }
        if started.elapsed() > grace {
            tree::signal_all(&exempt, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
