//! Starts processes in a mount namespace of their own, as root or as an ordinary user. Linux only.
//!
//! Everything is prepared before the fork. Between fork and exec only system calls are made, so that
//! a program with many threads can do this too.

use std::ffi::{CStr, CString, OsString};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr;
use std::sync::Arc;

/// The options of every overlay, relative to the layer's directory: paths need no quoting and have
/// no maximum length. With `userxattr`, the layers of a root and of an ordinary user are the same.
const OPTIONS: &CStr = c"lowerdir=lower,upperdir=upper,workdir=work,userxattr";

/// An overlay: a directory whose content comes from a layer, and below that from the directory
/// itself. Writes go to the layer.
pub(crate) struct Overlay {
    /// Where the overlay is mounted.
    pub(crate) target: PathBuf,
    /// The layer: a directory with the subdirectories `lower`, `upper` and `work`.
    pub(crate) layer: PathBuf,
    /// File systems mounted below the target, relative to it.
    pub(crate) submounts: Vec<PathBuf>,
}

/// The mounts of a namespace. Every process that enters gets a namespace of its own, which ends with
/// the last process in it.
#[derive(Debug)]
pub(crate) struct MountNamespace {
    /// The identity map for user IDs and group IDs, if a user namespace is needed.
    user: Option<[Vec<u8>; 2]>,
    overlays: Vec<PreparedOverlay>,
    /// A directory that processes in the namespace cannot see, and an empty one to mount over it,
    /// relative to the first layer.
    hidden: CString,
    is_root: bool,
}

#[derive(Debug)]
struct PreparedOverlay {
    target: CString,
    layer: CString,
    /// The path below `lower`, and the path of the mount.
    submounts: Vec<(CString, CString)>,
}

/// The step that failed while a process entered a namespace.
#[derive(Debug)]
pub(crate) enum EnterError {
    /// The namespace could not be created.
    Namespace(io::Error),
    /// The overlay with this index could not be mounted.
    Overlay(usize, io::Error),
}

impl MountNamespace {
    /// Prepares a namespace with these overlays, of which the outer ones come first. The directory
    /// `hidden` contains the layers, and an empty directory `empty`; it is not visible inside.
    ///
    /// With `user`, the namespace belongs to a user namespace in which the user keeps their ID and
    /// has no privileges.
    pub(crate) fn new(overlays: &[Overlay], hidden: &Path, user: bool) -> io::Result<Self> {
        let identity = |id: u32| format!("{id} {id} 1").into_bytes();
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let overlays = overlays.iter().map(|overlay| {
            let submounts = overlay.submounts.iter().map(|below| {
                Ok((
                    c_path(&Path::new("lower").join(below))?,
                    c_path(&overlay.target.join(below))?,
                ))
            });
            Ok(PreparedOverlay {
                target: c_path(&overlay.target)?,
                layer: c_path(&overlay.layer)?,
                submounts: submounts.collect::<io::Result<_>>()?,
            })
        });
        Ok(Self {
            user: user.then(|| [identity(uid.as_raw()), identity(gid.as_raw())]),
            overlays: overlays.collect::<io::Result<_>>()?,
            hidden: c_path(hidden)?,
            is_root: uid.is_root(),
        })
    }

    /// Makes the command start in such a namespace, in this directory.
    pub(crate) fn confine(self: &Arc<Self>, command: &mut Command, dir: &Path) -> io::Result<()> {
        let (namespace, dir) = (Arc::clone(self), c_path(dir)?);
        let mut fds = Vec::with_capacity(namespace.overlays.len());
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated: the
        // list of descriptors has room for every overlay.
        unsafe {
            command.pre_exec(move || {
                namespace.enter(&mut fds).map_err(EnterError::into_io)?;
                // The current directory is still the one below the mounts.
                check(libc::chdir(dir.as_ptr()))
            });
        }
        Ok(())
    }

    /// Enters such a namespace in a short-lived process, to find out whether that works.
    pub(crate) fn try_enter(self: &Arc<Self>) -> io::Result<Result<(), EnterError>> {
        let (result, child_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let namespace = Arc::clone(self);
        let mut fds = Vec::with_capacity(namespace.overlays.len());
        let mut command = Command::new("/");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let write_end = child_end.as_raw_fd();
        // SAFETY: as above. The process never gets to exec.
        unsafe {
            command.pre_exec(move || {
                let (step, errno) = match namespace.enter(&mut fds) {
                    Ok(()) => (0, 0),
                    Err(EnterError::Namespace(error)) => (0, errno(&error)),
                    Err(EnterError::Overlay(index, error)) => (index as i32 + 1, errno(&error)),
                };
                let message = [step.to_ne_bytes(), errno.to_ne_bytes()];
                libc::write(write_end, message.as_ptr().cast(), 8);
                libc::_exit(0)
            });
        }
        let mut child = command.spawn()?;
        drop(child_end);
        let mut message = [0; 8];
        let read = std::fs::File::from(result).read_exact(&mut message);
        // An embedding program may have reaped the process already.
        let _ = child.wait();
        read?;
        let number = |at: usize| i32::from_ne_bytes(message[at..at + 4].try_into().expect("4"));
        let error = io::Error::from_raw_os_error(number(4));
        Ok(match (number(0), number(4)) {
            (_, 0) => Ok(()),
            (0, _) => Err(EnterError::Namespace(error)),
            (step, _) => Err(EnterError::Overlay(step as usize - 1, error)),
        })
    }

    /// Moves this process, which was just forked, into a new namespace. Does not allocate.
    fn enter(&self, fds: &mut Vec<RawFd>) -> Result<(), EnterError> {
        self.unshare().map_err(EnterError::Namespace)?;
        // The outer overlays hide the real directories below them, and the layers in these. So
        // everything is opened and bound before the first overlay is mounted.
        for (index, overlay) in self.overlays.iter().enumerate() {
            let fd = overlay
                .bind()
                .map_err(|error| EnterError::Overlay(index, error))?;
            fds.push(fd);
        }
        for (index, (overlay, fd)) in self.overlays.iter().zip(fds.iter()).enumerate() {
            overlay
                .mount(*fd)
                .map_err(|error| EnterError::Overlay(index, error))?;
        }
        self.seal(fds).map_err(EnterError::Namespace)
    }

    fn unshare(&self) -> io::Result<()> {
        let flags = libc::CLONE_NEWNS | self.user.as_ref().map_or(0, |_| libc::CLONE_NEWUSER);
        // SAFETY: the process has one thread; it shares no memory that this could affect.
        check(unsafe { libc::unshare(flags) })?;
        if let Some([uids, gids]) = &self.user {
            write_file(c"/proc/self/setgroups", b"deny")?;
            write_file(c"/proc/self/uid_map", uids)?;
            write_file(c"/proc/self/gid_map", gids)?;
        }
        // No mount of this namespace may appear in the one it was copied from.
        mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)
    }

    /// Hides the layers and keeps the process from removing the mounts. An ordinary user has no
    /// capabilities after exec, but root has.
    fn seal(&self, fds: &[RawFd]) -> io::Result<()> {
        if let Some(fd) = fds.first() {
            // SAFETY: the descriptor is open.
            check(unsafe { libc::fchdir(*fd) })?;
            mount(c"../empty", &self.hidden, None, libc::MS_BIND)?;
        }
        for fd in fds {
            // SAFETY: nothing uses the descriptor any more.
            unsafe { libc::close(*fd) };
        }
        if self.is_root {
            const CAP_SYS_ADMIN: libc::c_ulong = 21;
            // SAFETY: this changes only what the process may do after exec.
            check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) })?;
        }
        Ok(())
    }
}

impl PreparedOverlay {
    /// Opens the layer, and binds the real directory to its `lower`.
    fn bind(&self) -> io::Result<RawFd> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path ends with NUL.
        let fd = unsafe { libc::open(self.layer.as_ptr(), flags) };
        check(fd)?;
        // SAFETY: the descriptor is open.
        check(unsafe { libc::fchdir(fd) })?;
        mount(&self.target, c"lower", None, libc::MS_BIND | libc::MS_REC)?;
        Ok(fd)
    }

    /// Mounts the overlay, and what was mounted below its target.
    fn mount(&self, fd: RawFd) -> io::Result<()> {
        // SAFETY: the descriptor is open.
        check(unsafe { libc::fchdir(fd) })?;
        mount(c"overlay", &self.target, Some((c"overlay", OPTIONS)), 0)?;
        for (source, target) in &self.submounts {
            mount(source, target, None, libc::MS_BIND | libc::MS_REC)?;
        }
        Ok(())
    }
}

impl EnterError {
    fn into_io(self) -> io::Error {
        match self {
            Self::Namespace(error) | Self::Overlay(_, error) => error,
        }
    }
}

fn mount(
    source: &CStr,
    target: &CStr,
    overlay: Option<(&CStr, &CStr)>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let (kind, data) = overlay.map_or((ptr::null(), ptr::null()), |(kind, options)| {
        (kind.as_ptr(), options.as_ptr().cast())
    });
    // SAFETY: every string ends with NUL and outlives the call.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, data) })
}

fn write_file(path: &CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: the path ends with NUL, and the descriptor is closed once.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(fd)?;
        let written = libc::write(fd, content.as_ptr().cast(), content.len());
        let result = check(written as i32);
        libc::close(fd);
        result
    }
}

fn check(code: i32) -> io::Result<()> {
    match code {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Returns the directories and files at which something is mounted. An unreadable list is empty; the
/// kernel then refuses an overlay that it would be needed for.
pub(crate) fn mountpoints() -> Vec<PathBuf> {
    let list = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let field = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(unescape);
    list.split(|byte| *byte == b'\n')
        .filter_map(field)
        .collect()
}

/// Decodes the kernel's octal escapes of spaces and backslashes.
fn unescape(field: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    let mut rest = field;
    while let [byte, tail @ ..] = rest {
        let digits = tail.get(..3).filter(|_| *byte == b'\\');
        let code =
            digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(code.unwrap_or(*byte));
        rest = code.map_or(tail, |_| &tail[3..]);
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
#[test]
fn mountpoints_are_unescaped() {
    let path = unescape(br"/a\040b\134c\011\12");
    assert_eq!(path.as_os_str().as_bytes(), b"/a b\\c\t\\12");
}
