//! The process that outlives the supervisor: whatever happens to it, nothing that it started stays.

use super::exemptions::Friends;
use super::signals::{Heard, Signals, WARDEN_GONE};
use super::termios::Pledge;
use super::tree;
use crate::engine::Exit;
use crate::os;
use crate::os::Side;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getppid, kill_process, setpgid};
use std::io;
use std::time::{Duration, Instant};

/// How the supervisor went away.
pub enum Left {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal; so many processes had to be ended after it.
    Killed {
        /// The signal.
        signal: i32,
        /// How many processes it had left.
        swept: usize,
        /// Which of them could not be ended.
        survivors: Vec<u32>,
    },
}

/// Runs `work` in a process of its own, and stays as its parent until nothing of it is left. Signals go
/// to the work: it has a group of its own, so that each reaches it exactly once. If this process is
/// killed, the work hears a hang-up.
pub fn guard(
    work: impl FnOnce() -> i32,
    grace: Duration,
    registered: &Friends,
) -> io::Result<Left> {
    tree::adopt_orphans();
    // Children from before, as after `sh -c 'daemon & exec ralph run …'`, are none of our business.
    let friends = tree::children(rustix::process::getpid());
    let warden = rustix::process::getpid();
    let pledge = Pledge::note();
    os::settle_signals();
    os::hold_signals();
    match os::fork()? {
        Side::Child => {
            setpgid(None, None)?;
            #[cfg(target_os = "linux")]
            rustix::process::set_parent_process_death_signal(Signal::from_named_raw(WARDEN_GONE))?;
            if getppid() != Some(warden) {
                std::process::exit(129);
            }
            tree::adopt_orphans();
            std::process::exit(work());
        }
        Side::Parent(pid) => {
            let pid = Pid::from_raw(pid).expect("a child has a pid");
            let exit = wait_for(pid)?;
            if let Some(pledge) = pledge {
                pledge.redeem(pid);
            }
            let (swept, survivors) = sweep(&friends, registered, grace);
            Ok(match exit {
                Exit {
                    code: Some(code), ..
                } => Left::Exited(code),
                Exit { signal, .. } => Left::Killed {
                    signal: signal.unwrap_or(0),
                    swept,
                    survivors,
                },
            })
        }
    }
}

fn wait_for(supervisor: Pid) -> io::Result<Exit> {
    let mut signals = Signals::listen_unless_ignored()?;
    let mut exit = None;
    // From here on there is nothing to do until the very end.
    os::memory::let_go_of_code();
    loop {
        // It may have ended before anybody listened.
        tree::reap(|pid, how| exit = exit.or((pid == supervisor).then_some(how)));
        if let Some(exit) = exit {
            return Ok(exit);
        }
        let mut fds: Vec<PollFd<'_>> = signals
            .fds()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let _ = poll(&mut fds, None);
        for heard in signals.take() {
            let forward = match heard {
                Heard::Child => continue,
                Heard::Resized => Signal::WINCH,
                Heard::Interrupt => Signal::INT,
                Heard::Terminate => Signal::TERM,
                Heard::HangUp => Signal::HUP,
            };
            let _ = kill_process(supervisor, forward);
        }
    }
}

/// Ends whatever is left below: TERM, grace, KILL until nothing is.
fn sweep(friends: &[Pid], registered: &Friends, grace: Duration) -> (usize, Vec<u32>) {
    let spared = || registered.now().and(friends);
    let found = tree::descendants(&spared()).len();
    let begun = Instant::now();
    if found > 0 {
        tree::signal(&spared(), Signal::TERM);
    }
    loop {
        let nobody = tree::reap(|_, _| {});
        let spared = spared();
        let left = tree::descendants(&spared);
        // Who dies during the look hides what was below, and is not buried yet: where nobody is spared, only the
        // kernel's word counts.
        let sure = nobody || !spared.is_empty();
        if left.is_empty() && sure || begun.elapsed() > grace * 7 {
            return (
                found,
                left.into_iter()
                    .map(|pid| pid.as_raw_nonzero().get() as u32)
                    .collect(),
            );
        }
        if begun.elapsed() > grace {
            tree::signal(&spared, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
