//! Starts a process in its own session with `posix_spawn`, which does not copy this process's page
//! tables as `fork` does. Linux only: on other systems, `Command` forks.

use super::IGNORED_SIGNALS;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr;

/// A process to start. It becomes the leader of a new session and process group, without a
/// controlling terminal and with default signal dispositions.
pub(crate) struct SessionProcess<'a> {
    /// The program to start, followed by its arguments.
    pub(crate) command: &'a [String],
    /// The working directory. A relative program path is resolved against it.
    pub(crate) dir: &'a Path,
    /// The complete environment; nothing is inherited.
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) stdin: BorrowedFd<'a>,
    /// The file for both standard output and standard error.
    pub(crate) output: BorrowedFd<'a>,
}

impl SessionProcess<'_> {
    /// Starts the process and returns its ID. The caller must reap the process.
    pub(crate) fn spawn(&self) -> io::Result<i32> {
        let [program, args @ ..] = self.command else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let dir = CString::new(self.dir.as_os_str().as_bytes())?;
        let args = args
            .iter()
            .map(|arg| CString::new(arg.as_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let env = self
            .env
            .iter()
            .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
            .collect::<Result<Vec<_>, _>>()?;
        let attributes = Attributes::new()?;
        let actions = FileActions::new(&dir, self.stdin, self.output)?;
        let start = |path: &CStr, words: &[&CStr]| -> io::Result<i32> {
            let (word_list, env_list) = (
                pointers(words.iter().copied()),
                pointers(env.iter().map(AsRef::as_ref)),
            );
            let mut pid = 0;
            // SAFETY: every pointer is to a value that outlives the call, and both lists end with
            // null.
            check(unsafe {
                libc::posix_spawn(
                    &raw mut pid,
                    path.as_ptr(),
                    &raw const actions.0,
                    &raw const attributes.0,
                    word_list.as_ptr(),
                    env_list.as_ptr(),
                )
            })?;
            Ok(pid)
        };
        let program = CString::new(program.as_bytes())?;
        let words: Vec<&CStr> = [program.as_c_str()]
            .into_iter()
            .chain(args.iter().map(AsRef::as_ref))
            .collect();
        let mut refused = None;
        for path in self.candidates(&program)? {
            match start(&path, &words) {
                // The shell runs a script without an interpreter line, as with `execvp`.
                Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
                    let mut shell = vec![c"/bin/sh", path.as_c_str()];
                    shell.extend(args.iter().map(CString::as_c_str));
                    return start(c"/bin/sh", &shell);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refused = refused.or(Some(error));
                }
                Err(error) if is_missing(&error) => {}
                result => return result,
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT)))
    }

    /// Returns the paths to try: the program itself if its name contains a slash, else one path for
    /// each directory in the new process's `PATH`.
    fn candidates(&self, program: &CStr) -> io::Result<Vec<CString>> {
        let name = program.to_bytes();
        if name.contains(&b'/') {
            return Ok(vec![program.to_owned()]);
        }
        let path = self.env.iter().find(|(name, _)| name == "PATH");
        let path = path.map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), |(_, path)| path);
        let candidates = std::env::split_paths(path).map(|entry| {
            CString::new(
                entry
                    .join(OsStr::from_bytes(name))
                    .into_os_string()
                    .into_vec(),
            )
        });
        Ok(candidates.collect::<Result<_, _>>()?)
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn pointers<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*mut libc::c_char> {
    strings
        .map(|string| string.as_ptr().cast_mut())
        .chain([ptr::null_mut()])
        .collect()
}

fn check(code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let flags = libc::POSIX_SPAWN_SETSID
            | libc::POSIX_SPAWN_SETSIGDEF as libc::c_short
            | libc::POSIX_SPAWN_SETSIGMASK as libc::c_short;
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes and both signal sets are initialized before they are used.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut attributes = Self(attributes.assume_init());
            let mut signals = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            check(libc::posix_spawnattr_setsigmask(
                &raw mut attributes.0,
                &raw const signals,
            ))?;
            for signal in IGNORED_SIGNALS.into_iter().chain([libc::SIGPIPE]) {
                libc::sigaddset(&raw mut signals, signal);
            }
            check(libc::posix_spawnattr_setsigdefault(
                &raw mut attributes.0,
                &raw const signals,
            ))?;
            check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags))?;
            Ok(attributes)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: they were initialized, and are not used again.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new(dir: &CStr, stdin: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the actions are initialized before they are used, and copy the path.
        unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            let mut actions = Self(actions.assume_init());
            for (from, to) in [(stdin, 0), (output, 1), (output, 2)] {
                check(libc::posix_spawn_file_actions_adddup2(
                    &raw mut actions.0,
                    from.as_raw_fd(),
                    to,
                ))?;
            }
            check(libc::posix_spawn_file_actions_addchdir_np(
                &raw mut actions.0,
                dir.as_ptr(),
            ))?;
            Ok(actions)
        }
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: they were initialized, and are not used again.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}
