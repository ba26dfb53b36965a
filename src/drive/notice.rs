//! Files that appear or change, noticed at once where the system can tell, and by the second elsewhere.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Watches files and directories; says only that it is time to look.
pub struct Notices {
    inotify: Option<OwnedFd>,
}

impl Notices {
    /// Opens the ears; without them the caller's slow look has to do.
    pub fn open() -> Self {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{CreateFlags, init};
            Self { inotify: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok() }
        }
        #[cfg(not(target_os = "linux"))]
        Self { inotify: None }
    }

    /// Watches a file for changes, or a directory for new entries. May be repeated.
    pub fn watch(&self, path: &Path) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &self.inotify {
            use rustix::fs::inotify::{WatchFlags, add_watch};
            let entries = WatchFlags::CREATE | WatchFlags::MOVED_TO;
            let what = if path.is_dir() { entries } else { WatchFlags::MODIFY };
            let _ = add_watch(inotify, path, what);
        }
    }

    /// Sleeps until something is noticed, or this long.
    pub fn wait(&self, at_most: Duration) {
        let mut fds: Vec<PollFd<'_>> =
            self.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).into_iter().collect();
        let _ = poll(&mut fds, Timespec::try_from(at_most).ok().as_ref());
        self.clear();
    }

    /// What to poll.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Forgets what was noticed; the caller looks at everything anyway.
    pub fn clear(&self) {
        let mut buffer = [0; 4096];
        // Not until nothing is left: an agent can make files faster than this can read of them.
        for _ in 0..4 {
            let Some(Ok(1..)) = self.inotify.as_ref().map(|fd| rustix::io::read(fd, &mut buffer[..])) else {
                return;
            };
        }
    }
}
