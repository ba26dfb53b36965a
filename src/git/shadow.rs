//! A git directory of ralph's own for the user's working tree: it has its own index, and files are
//! read and written byte for byte, whatever the repository's settings and attributes say.
//!
//! Its objects are the repository's own, or are written to a scratch directory. The settings are
//! written again before each use, because an agent could have changed them.

use super::command::{self, GitError, GitOutput};
use super::diff::DIFF_OPTIONS;
use super::overlay::{RepositoryFiles, alternates, create_private};
use super::{READ_MAX, look};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The attributes of every file. Those in `info/attributes` outweigh all others.
const ATTRIBUTES: &str = "* -text !eol !crlf -ident !filter !working-tree-encoding\n";

/// The repository's settings that describe its format, its file system and its ignored files.
const SHARED_SETTINGS: &str = r"^(core\.(filemode|symlinks|ignorecase|precomposeunicode|excludesfile|autocrlf)|extensions\.objectformat)$";

/// Options for a patch whose added lines are read.
const PATCH_OPTIONS: [&str; 7] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--unified=0",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Maximum size of such a patch, in bytes.
const PATCH_MAX: usize = 16 << 20;

/// The most time for a git command that reads or writes many files.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A git directory of ralph's own.
pub(super) struct ShadowRepository<'a> {
    /// The working tree; `None` for commands that need none.
    top: Option<&'a Path>,
    dir: PathBuf,
    index: PathBuf,
    objects: PathBuf,
    /// The directories with further objects; `None` if the new ones go to the repository.
    alternates: Option<OsString>,
}

/// What a shadow repository takes over from the user's.
#[derive(Debug)]
pub(super) struct ShadowSettings {
    pub(super) files: RepositoryFiles,
    values: BTreeMap<String, String>,
}

impl ShadowSettings {
    /// Reads the settings of the repository whose top is `top`.
    pub(super) fn read(top: &Path) -> Result<Self, String> {
        let args = ["config", "-z", "--get-regexp", SHARED_SETTINGS];
        let output = command::run(&mut look::git(top, &args), READ_MAX, command::TIMEOUT)
            .map_err(GitError::message)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let entries = text.split('\0').filter(|entry| !entry.is_empty());
        let values = entries.map(|entry| {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            (key.to_owned(), value.to_owned())
        });
        Ok(Self {
            files: RepositoryFiles::find(top)?,
            values: values.collect(),
        })
    }

    /// Returns whether git converts line endings even of files without an attribute.
    pub(super) fn converts_all(&self) -> bool {
        let value = self.values.get("core.autocrlf");
        value.is_some_and(|value| !matches!(value.as_str(), "false" | "no" | "off" | "0" | ""))
    }

    fn config(&self) -> String {
        let format = self.values.get("extensions.objectformat");
        let mut text = format!(
            "[core]\n\trepositoryformatversion = {}\n",
            u8::from(format.is_some())
        );
        for (key, value) in &self.values {
            let Some(name) = key.strip_prefix("core.").filter(|name| *name != "autocrlf") else {
                continue;
            };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "\t{name} = \"{}\"", value.replace('\n', "\\n"));
        }
        if let Some(format) = format.filter(|format| *format == "sha1" || *format == "sha256") {
            let _ = writeln!(text, "[extensions]\n\tobjectFormat = {format}");
        }
        text
    }
}

impl<'a> ShadowRepository<'a> {
    /// Opens the shadow in `dir`, and creates it if it is missing. `index` is a file in `dir`. With
    /// `stores`, new objects are written to the user's repository.
    pub(super) fn open(
        top: &'a Path,
        dir: &Path,
        settings: &ShadowSettings,
        index: &str,
        stores: bool,
    ) -> Result<Self, String> {
        let shadow = Self::prepare(dir, settings)
            .map_err(|error| format!("cannot write to {}: {error}", dir.display()))?;
        let index = shadow.dir.join(index);
        // Only one process at a time uses the directory, so a lock is left from a crash.
        let _ = fs::remove_file(lock_of(&index));
        let (objects, alternates) = if stores {
            (settings.files.objects.clone(), None)
        } else {
            (
                shadow.dir.join("objects"),
                Some(alternates(&settings.files.objects)),
            )
        };
        Ok(Self {
            top: Some(top),
            index,
            objects,
            alternates,
            ..shadow
        })
    }

    /// Opens the shadow in `dir` for commands that need only the objects in `objects`.
    pub(super) fn without_tree(dir: &Path, objects: &Path) -> Self {
        Self {
            top: None,
            dir: dir.to_owned(),
            index: dir.join("no-index"),
            objects: objects.to_owned(),
            alternates: None,
        }
    }

    fn prepare(dir: &Path, settings: &ShadowSettings) -> io::Result<Self> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        for name in ["objects", "refs", "info"] {
            private.create(dir.join(name))?;
        }
        // Git runs in another directory, so its paths must be absolute.
        let dir = fs::canonicalize(dir)?;
        let exclude = fs::read(&settings.files.exclude).unwrap_or_default();
        let config = settings.config();
        let files: [(&str, &[u8]); 4] = [
            ("HEAD", b"ref: refs/heads/none\n"),
            ("config", config.as_bytes()),
            ("info/attributes", ATTRIBUTES.as_bytes()),
            ("info/exclude", &exclude),
        ];
        for (name, bytes) in files {
            let path = dir.join(name);
            if fs::read(&path).is_ok_and(|now| now == bytes) {
                continue;
            }
            create_private(&path)?.write_all(bytes)?;
        }
        Ok(Self {
            top: None,
            index: PathBuf::new(),
            objects: PathBuf::new(),
            alternates: None,
            dir,
        })
    }

    pub(super) fn index(&self) -> &Path {
        &self.index
    }

    /// Runs git. An exit code other than 0, and too much output, are errors.
    pub(super) fn git(&self, args: &[&str]) -> Result<GitOutput, String> {
        self.git_with_stdin(args, Stdio::null())
    }

    /// Runs git with a list of bytes on its standard input.
    pub(super) fn git_with_input(&self, args: &[&str], input: &[u8]) -> Result<GitOutput, String> {
        self.git_with_stdin(args, self.input(input)?)
    }

    /// Runs git with a few bytes on its standard input. Unlike [`Self::git_with_input`], this writes
    /// no file, so that readers of a loop can use it. The bytes must fit in a pipe.
    pub(super) fn git_with_pipe(&self, args: &[&str], input: &[u8]) -> Result<GitOutput, String> {
        let pipe = io::pipe().and_then(|(reader, mut writer)| {
            writer.write_all(input)?;
            Ok(reader)
        });
        let reader = pipe.map_err(|error| format!("cannot write to git: {error}"))?;
        self.git_with_stdin(args, reader.into())
    }

    /// Returns a standard input with these bytes. A file, because git and ralph could wait for each
    /// other at the two ends of a pipe.
    pub(super) fn input(&self, bytes: &[u8]) -> Result<Stdio, String> {
        let path = self.dir.join("input");
        let file = create_private(&path)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| File::open(&path));
        let _ = fs::remove_file(&path);
        file.map(Stdio::from)
            .map_err(|error| format!("cannot write to {}: {error}", path.display()))
    }

    /// Runs a git command whose exit code 1 means that it found nothing, and returns what it printed.
    pub(super) fn git_or_none(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        match self.run(args, self.input(input)?)? {
            output if matches!(output.code, Some(0 | 1)) => Ok(output.stdout),
            output => Err(output.error_message(args.first().unwrap_or(&""))),
        }
    }

    /// Runs git and returns what it printed, without the newline at the end.
    pub(super) fn text(&self, args: &[&str]) -> Result<String, String> {
        let output = self.git(args)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn git_with_stdin(&self, args: &[&str], stdin: Stdio) -> Result<GitOutput, String> {
        let output = self.run(args, stdin)?;
        match output.code {
            Some(0) => Ok(output),
            _ => Err(output.error_message(args.first().unwrap_or(&""))),
        }
    }

    /// Runs git with its output in a file, which may be long. The file has no name any more.
    pub(super) fn git_to_file(&self, args: &[&str]) -> Result<File, String> {
        let path = self.dir.join("output");
        let cannot_write = |error| format!("cannot write to {}: {error}", path.display());
        let file = create_private(&path).and_then(|file| Ok((file, File::open(&path)?)));
        let _ = fs::remove_file(&path);
        let (written, read) = file.map_err(cannot_write)?;
        let mut command = self.command(args);
        let output = command::run_to_file(&mut command, Stdio::null(), written, TIMEOUT)
            .map_err(GitError::message)?;
        match output.code {
            Some(0) => Ok(read),
            _ => Err(output.error_message(args.first().unwrap_or(&""))),
        }
    }

    /// Runs git, and calls `each` for every record of its output. A NUL byte ends a record.
    pub(super) fn for_each_record(
        &self,
        args: &[&str],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), String> {
        let mut output = BufReader::new(self.git_to_file(args)?);
        let mut record = Vec::new();
        loop {
            record.clear();
            match output.read_until(0, &mut record) {
                Ok(0) => return Ok(()),
                Ok(_) => each(record.strip_suffix(&[0]).unwrap_or(&record)),
                Err(error) => return Err(format!("cannot read from git: {error}")),
            }
        }
    }

    /// Returns the changes from one tree to another as a patch without context, and whether it was
    /// cut off because it is too long.
    pub(super) fn patch(&self, from: &str, to: &str) -> Result<(Vec<u8>, bool), String> {
        let args = [&PATCH_OPTIONS[..], &DIFF_OPTIONS, &[from, to, "--"]].concat();
        self.run_cut(&args, PATCH_MAX)
    }

    /// Returns the changes from one tree to another as a patch of at most `max` bytes, and whether
    /// it was cut off.
    pub(super) fn patch_start(
        &self,
        (from, to): (&str, &str),
        max: usize,
    ) -> Result<(Vec<u8>, bool), String> {
        let fixed = ["diff", "--no-ext-diff", "--no-textconv", "--patch"];
        let args = [&fixed[..], &DIFF_OPTIONS, &[from, to, "--"]].concat();
        self.run_cut(&args, max)
    }

    /// Runs git until it has printed `max` bytes. Returns its output, and whether it was cut off.
    fn run_cut(&self, args: &[&str], max: usize) -> Result<(Vec<u8>, bool), String> {
        let output = command::run(&mut self.command(args), max, command::TIMEOUT)
            .map_err(GitError::message)?;
        match output.code {
            Some(0) => Ok((output.stdout, false)),
            _ if output.truncated => Ok((output.stdout, true)),
            _ => Err(output.error_message("diff")),
        }
    }

    fn run(&self, args: &[&str], stdin: Stdio) -> Result<GitOutput, String> {
        let mut command = self.command(args);
        let output = command::run_with_stdin(&mut command, stdin, command::LIST_MAX, TIMEOUT)
            .map_err(GitError::message)?;
        if output.truncated {
            return Err("too many changed files".into());
        }
        Ok(output)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = look::own_git(self.top.unwrap_or(&self.dir));
        if self.alternates.is_none() {
            // These objects are kept. A pack for each large file would be in the way.
            command.args([
                "-c",
                "core.looseCompression=1",
                "-c",
                "core.bigFileThreshold=64m",
            ]);
        }
        command
            .args(["-c", "submodule.recurse=false"])
            .args(args)
            .env("GIT_DIR", &self.dir)
            .env("GIT_INDEX_FILE", &self.index)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env_remove("GIT_COMMON_DIR")
            .env_remove("GIT_NAMESPACE")
            .env_remove("GIT_ATTR_SOURCE")
            .env_remove("GIT_WORK_TREE");
        command.envs(self.top.map(|top| ("GIT_WORK_TREE", top)));
        let alternates = self.alternates.as_ref();
        command.envs(alternates.map(|list| ("GIT_ALTERNATE_OBJECT_DIRECTORIES", list)));
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "ralph")
                .env(format!("GIT_{who}_EMAIL"), "ralph@localhost")
                .env_remove(format!("GIT_{who}_DATE"));
        }
        command
    }
}

/// Returns the path of git's lock on an index.
fn lock_of(index: &Path) -> PathBuf {
    let mut path = index.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}
