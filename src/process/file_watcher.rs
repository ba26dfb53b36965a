//! Watches files and directories with inotify, and reports that a change happened, but not which
//! one.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(target_os = "linux")]
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An inotify instance. Where inotify is unavailable, or a file system does not report changes,
/// callers must poll.
pub(crate) struct FileWatcher {
    inotify: Option<OwnedFd>,
    /// Whether a watched path may change without an event.
    may_miss_changes: bool,
    /// The paths that have an inotify watch.
    watched: Vec<PathBuf>,
    /// Whether a watched path was removed or moved.
    lost_watch: bool,
    /// The time at which all watches were last renewed.
    renewed_at: Instant,
    /// The names of files whose changes are not reported.
    ignored: Vec<&'static str>,
}

/// Interval at which watches are renewed. If a parent directory is replaced, an old watch reports
/// nothing.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);

/// The completeness of a change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only inotify reports them")
)]
pub(crate) enum WriteState {
    /// A file was created and may still be written to.
    InProgress,
    Complete,
}

impl FileWatcher {
    pub(crate) fn open() -> Self {
        #[cfg(target_os = "linux")]
        let inotify = {
            use rustix::fs::inotify::{CreateFlags, init};
            // This can fail: by default, a user can have at most 128 inotify instances.
            init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()
        };
        #[cfg(not(target_os = "linux"))]
        let inotify = None;
        Self {
            inotify,
            may_miss_changes: false,
            watched: Vec::new(),
            lost_watch: false,
            renewed_at: Instant::now(),
            ignored: Vec::new(),
        }
    }

    /// Watches a file for changes, or a directory for new entries. Call this again after
    /// [`FileWatcher::reset`].
    pub(crate) fn watch(&mut self, path: &Path) {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{WatchFlags, add_watch};
            let Some(inotify) = &self.inotify else { return };
            if self.watched.iter().any(|watched| watched == path) {
                return;
            }
            let moved = WatchFlags::CLOSE_WRITE | WatchFlags::MOVE_SELF;
            let entries = moved | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            // Adding a watch for entries fails on a file. Trying it costs less than checking the
            // file type first.
            let is_watched = add_watch(inotify, path, entries).is_ok()
                || add_watch(inotify, path, moved | WatchFlags::MODIFY).is_ok();
            if is_watched && is_local(path) {
                self.watched.push(path.to_owned());
            } else {
                self.may_miss_changes = true;
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = path;
    }

    /// Returns whether a path watched since [`FileWatcher::reset`] may change without an event.
    pub(crate) fn may_miss_changes(&self) -> bool {
        self.may_miss_changes
    }

    /// Drops the watches if one was lost or all are old. Call this before watching everything
    /// again: a path may have been removed or created.
    pub(crate) fn reset(&mut self) {
        if self.lost_watch || self.may_miss_changes || self.renewed_at.elapsed() > RENEW_INTERVAL {
            self.watched.clear();
            self.lost_watch = false;
            self.may_miss_changes = false;
            self.renewed_at = Instant::now();
        }
    }

    /// Stops reporting changes to files with this name.
    pub(crate) fn ignore(&mut self, name: &'static str) {
        if !self.ignored.contains(&name) {
            self.ignored.push(name);
        }
    }

    /// Returns whether inotify is unavailable.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.inotify.is_none()
    }

    /// Waits until a watched path changes, but at most `at_most`.
    pub(crate) fn wait(&mut self, at_most: Duration) {
        let mut fds: Vec<PollFd<'_>> = self
            .fd()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .into_iter()
            .collect();
        let _ = poll(&mut fds, Timespec::try_from(at_most).ok().as_ref());
        self.drain();
    }

    /// Returns a descriptor that becomes readable when a watched path changes; `None` if inotify is
    /// unavailable.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Discards pending events. Returns whether any reported change is complete; `None` if no event
    /// reported a change.
    pub(crate) fn drain(&mut self) -> Option<WriteState> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{ReadFlags, Reader};
            let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(self.inotify.as_ref()?, &mut buffer);
            let mut change = None;
            // The number is bounded, because an agent can create files faster than events are read.
            for _ in 0..MAX_EVENTS {
                let Ok(event) = reader.next() else { break };
                let name = event.file_name().and_then(|name| CStr::to_str(name).ok());
                if name.is_some_and(|name| self.ignored.contains(&name)) {
                    continue;
                }
                self.lost_watch |= event
                    .events()
                    .intersects(ReadFlags::IGNORED | ReadFlags::MOVE_SELF);
                change = change.max(Some(if event.events() == ReadFlags::CREATE {
                    WriteState::InProgress
                } else {
                    WriteState::Complete
                }));
            }
            change
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

#[cfg(target_os = "linux")]
const MAX_EVENTS: usize = 1024;

/// Returns whether the file system of `path` is local. The kernel reports every change to a local
/// file system. Network, virtual machine and FUSE file systems may change without an event.
#[cfg(target_os = "linux")]
fn is_local(path: &Path) -> bool {
    /// Magic numbers of ext, XFS, Btrfs, tmpfs, overlay, ZFS, F2FS, bcachefs and ramfs.
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
    // The field is a signed 32-bit integer on some platforms.
    rustix::fs::statfs(path)
        .is_ok_and(|system| LOCAL.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::Write;

    #[test]
    fn a_created_file_is_in_progress_until_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let mut watcher = FileWatcher::open();
        if watcher.is_unavailable() {
            // Other processes of this user hold all instances.
            return;
        }
        watcher.watch(dir.path());
        assert!(
            !watcher.may_miss_changes(),
            "tests run on a local file system"
        );
        assert_eq!(watcher.drain(), None);
        let mut file = File::create(dir.path().join("a")).unwrap();
        assert_eq!(watcher.drain(), Some(WriteState::InProgress));
        file.write_all(b"a").unwrap();
        drop(file);
        assert_eq!(watcher.drain(), Some(WriteState::Complete));
        fs::create_dir(dir.path().join("b")).unwrap();
        assert_eq!(
            watcher.drain(),
            Some(WriteState::Complete),
            "a directory is complete at once"
        );
        File::create(dir.path().join("c")).unwrap();
        assert_eq!(
            watcher.drain(),
            Some(WriteState::Complete),
            "created and closed"
        );
    }

    #[test]
    fn a_missing_path_makes_the_watcher_unreliable_until_reset() {
        let dir = tempfile::tempdir().unwrap();
        let mut watcher = FileWatcher::open();
        if watcher.is_unavailable() {
            return;
        }
        watcher.watch(&dir.path().join("a"));
        assert!(watcher.may_miss_changes());
        watcher.reset();
        assert!(!watcher.may_miss_changes());
        watcher.watch(Path::new("/proc/self"));
        assert!(watcher.may_miss_changes(), "procfs reports no changes");
    }
}
