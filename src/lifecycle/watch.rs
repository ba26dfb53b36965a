//! How a verb sleeps until a loop's files change, or until nobody runs that loop any more.

use super::session;
use crate::process::file_watcher::Notices;
use crate::store::{LoopDir, await_free, cache};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A thread that sleeps in the kernel, and reads where a loop stands when it wakes, needs little of its own.
pub(crate) const STACK: usize = 512 * 1024;
/// A client may go without a sound.
const CLIENT_GONE: Duration = Duration::from_secs(1);
/// Where files cannot be heard, they are looked at this often.
const DEAF: Duration = Duration::from_millis(50);

/// Sleeps until nobody has this loop under way any more: no runner, and no session.
pub(crate) fn await_over(dir: &LoopDir) {
    let mut notices = None;
    loop {
        await_free(&dir.lock());
        if !cache::read(dir).is_ok_and(|view| session::has(&view.state)) {
            return;
        }
        let notices = notices.get_or_insert_with(Notices::open);
        notices.watch(&dir.journal());
        notices.wait(CLIENT_GONE);
    }
}

/// Hears of one loop. A thread waits for its lock, so whoever has one must not fork any more.
pub(crate) struct Ear {
    /// Opened when there is a file to listen to: the kernel takes its time to close it.
    notices: Option<Notices>,
    /// Closed at the other end once nobody holds the lock.
    gone: UnixStream,
}

impl Ear {
    /// Listens for the end of whoever runs this loop now.
    pub(crate) fn on(dir: &LoopDir) -> io::Result<Self> {
        let (gone, theirs) = UnixStream::pair()?;
        let dir = dir.clone();
        let sleep = move || {
            await_over(&dir);
            drop(theirs);
        };
        std::thread::Builder::new().stack_size(STACK).spawn(sleep)?;
        Ok(Self {
            notices: None,
            gone,
        })
    }

    /// Listens to these files, too. May be repeated: one may have come at last.
    pub(crate) fn watch(&mut self, paths: &[PathBuf]) {
        let notices = self.notices.get_or_insert_with(Notices::open);
        notices.renew();
        for path in paths {
            notices.watch(path);
        }
    }

    /// Whether the runner is gone; all that it wrote is then on disk.
    pub(crate) fn is_gone(&self) -> bool {
        self.sleep(Duration::ZERO)
    }

    /// Sleeps until a file has changed, the runner is gone, or this long; whether the runner is gone.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let hears = self
            .notices
            .as_ref()
            .is_some_and(|notices| !notices.are_none() && !notices.is_deaf());
        self.sleep(if hears { at_most } else { at_most.min(DEAF) })
    }

    /// Sleeps until the runner is gone, or this long; whether it is gone.
    pub(crate) fn wait_for_end(&self, at_most: Duration) -> bool {
        self.sleep(at_most)
    }

    fn sleep(&self, at_most: Duration) -> bool {
        let mut fds = vec![PollFd::from_borrowed_fd(self.gone.as_fd(), PollFlags::IN)];
        let notices = self.notices.as_ref();
        fds.extend(
            notices
                .and_then(Notices::fd)
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        let _ = poll(&mut fds, Timespec::try_from(at_most).ok().as_ref());
        if let Some(notices) = notices {
            notices.take();
        }
        !fds[0].revents().is_empty()
    }
}
