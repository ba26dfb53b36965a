//! Files that appear or change, noticed at once where the system can tell, and by the second elsewhere.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Watches files and directories; says only that it is time to look.
pub struct Notices {
    inotify: Option<OwnedFd>,
    deaf: bool,
}

/// When to look at what was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// A file was made, and whoever made it may still be writing.
    Soon,
    /// Whatever happened is over.
    Now,
}

impl Notices {
    /// Opens the ears; without them the caller's slow look has to do.
    pub fn open() -> Self {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{CreateFlags, init};
            // A user has only so many of them: 128, where nobody has changed that.
            Self {
                inotify: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok(),
                deaf: false,
            }
        }
        #[cfg(not(target_os = "linux"))]
        Self {
            inotify: None,
            deaf: false,
        }
    }

    /// Watches a file for changes, or a directory for new entries. May be repeated.
    pub fn watch(&mut self, path: &Path) {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{WatchFlags, add_watch};
            let entries = WatchFlags::CREATE | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
            let what = if path.is_dir() {
                entries
            } else {
                WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE
            };
            let watched = self
                .inotify
                .as_ref()
                .is_none_or(|fd| add_watch(fd, path, what).is_ok());
            self.deaf |= !watched || !tells(path);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = path;
    }

    /// Whether something has been watched since [`Notices::renew`] of which nobody may tell.
    pub fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// Everything that matters is about to be watched again: a file may have gone, or have come at last.
    pub fn renew(&mut self) {
        self.deaf = false;
    }

    /// Whether there are no ears at all.
    pub fn are_none(&self) -> bool {
        self.inotify.is_none()
    }

    /// Sleeps until something is noticed, or this long.
    pub fn wait(&self, at_most: Duration) {
        let mut fds: Vec<PollFd<'_>> = self
            .fd()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .into_iter()
            .collect();
        let _ = poll(&mut fds, Timespec::try_from(at_most).ok().as_ref());
        self.take();
    }

    /// What to poll.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Forgets what was noticed, as the caller looks at everything anyway, and says when to do so.
    pub fn take(&self) -> Option<When> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{ReadFlags, Reader};
            let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(self.inotify.as_ref()?, &mut buffer);
            let mut when = None;
            // Not until nothing is left: an agent can make files faster than this can read of them.
            for _ in 0..EVENTS_AT_ONCE {
                let Ok(event) = reader.next() else { break };
                let file_made = event.events() == ReadFlags::CREATE;
                when = when.max(Some(if file_made { When::Soon } else { When::Now }));
            }
            when
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

#[cfg(target_os = "linux")]
const EVENTS_AT_ONCE: usize = 1024;

/// Whether all who can change something there are on this machine, so that the kernel knows of it. What a server, the
/// host of a virtual machine or a program serves may change behind its back.
#[cfg(target_os = "linux")]
fn tells(path: &Path) -> bool {
    /// Those that are in wide use: ext, XFS, Btrfs, tmpfs, overlay, ZFS, F2FS, bcachefs and ramfs.
    const LOCAL: [u64; 9] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0x2fc1_2fc1,
        0xf2f5_2010,
        0xca45_1a4e,
        0x8584_58f6,
    ];
    // Some systems know it as a signed word of 32 bits.
    rustix::fs::statfs(path)
        .is_ok_and(|system| LOCAL.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::Write;

    #[test]
    fn what_is_being_written_is_looked_at_soon_and_what_is_written_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut notices = Notices::open();
        if notices.are_none() {
            // Others on this machine have taken all there are.
            return;
        }
        notices.watch(dir.path());
        assert!(!notices.is_deaf(), "where do these tests run?");
        assert_eq!(notices.take(), None);
        let mut file = File::create(dir.path().join("a")).unwrap();
        assert_eq!(notices.take(), Some(When::Soon));
        file.write_all(b"a").unwrap();
        drop(file);
        assert_eq!(notices.take(), Some(When::Now));
        fs::create_dir(dir.path().join("b")).unwrap();
        assert_eq!(
            notices.take(),
            Some(When::Now),
            "nobody writes into a directory"
        );
        File::create(dir.path().join("c")).unwrap();
        assert_eq!(notices.take(), Some(When::Now), "made and closed");
    }

    #[test]
    fn what_is_not_there_makes_deaf_until_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut notices = Notices::open();
        if notices.are_none() {
            return;
        }
        notices.watch(&dir.path().join("a"));
        assert!(notices.is_deaf());
        notices.renew();
        assert!(!notices.is_deaf());
        notices.watch(Path::new("/proc/self"));
        assert!(notices.is_deaf(), "nobody tells of what happens there");
    }
}
