//! Builds the git commands that only look: with options that keep the repository's settings from
//! running a program, whatever they say.
//!
//! A repository may come from anywhere, and with its `.git` directory comes its configuration. Only
//! commands that change something at the user's request behave as that configuration says.

use super::command;
use super::inner;
use crate::os::{program, regular_file};
use memchr::memmem;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Overrides of settings that would run programs, write outside the index, or reject files.
const CONFIG: [&str; 11] = [
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.hooksPath=/dev/null",
    // A directory of a repository may itself look like a repository, with its own settings.
    "safe.bareRepository=explicit",
    // A split index would write its shared part into the user's repository.
    "core.splitIndex=false",
    // With this setting, git refuses to add a file whose line endings would change in a round trip.
    "core.safecrlf=false",
    // The scratch objects are short-lived: save time rather than space.
    "core.compression=0",
    "core.looseCompression=0",
    // Larger files count as binary, so comparing them takes little time and memory.
    "core.bigFileThreshold=8m",
    "diff.autoRefreshIndex=true",
    "diff.suppressBlankEmpty=false",
];

/// Variables of the user's environment that would change what git prints, or run a program.
const UNSET: [&str; 6] = [
    "GIT_DIFF_OPTS",
    "GIT_EXTERNAL_DIFF",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// Subcommands that convert or merge the content of files, for which a repository can name programs.
const READS_CONTENT: [&str; 6] = [
    "add",
    "diff",
    "ls-files",
    "merge-tree",
    "status",
    "update-index",
];

/// Matches the settings that name these programs: the filters of files and the drivers of merges.
const PROGRAM_SETTINGS: &str = r"^(filter\..*\.(clean|smudge|process)|merge\..*\.driver)$";

/// The environment variable in which git passes settings on to the git processes it starts. Git
/// clears `GIT_CONFIG_COUNT` before it examines a submodule, but not this one.
const PARAMETERS: &str = "GIT_CONFIG_PARAMETERS";

/// Maximum number and depth of repositories inside a repository whose settings are examined.
const INNER_MAX: usize = 256;
const DEPTH_MAX: usize = 4;

/// The most bytes of an index that are searched.
const INDEX_MAX: u64 = 256 << 20;

/// Returns a git command that runs in `dir` and only looks. `GIT_DIR` and similar variables of the
/// user apply.
pub(super) fn git(dir: &Path, args: &[&str]) -> Command {
    git_as(&["git"], dir, args, false)
}

/// Like [`git`], for a program with another name, or with first arguments of its own. With
/// `runs_filters`, files are converted as in a commit.
pub(super) fn git_as<S: AsRef<OsStr>>(
    program: &[S],
    dir: &Path,
    args: &[&str],
    runs_filters: bool,
) -> Command {
    let reads = args
        .first()
        .is_some_and(|subcommand| READS_CONTENT.contains(subcommand));
    let programs = if reads && !runs_filters {
        Programs::find_as(program, dir)
    } else {
        Programs(None)
    };
    build(program, dir, args, &programs)
}

/// The programs that a repository's settings name, as the value of a variable that turns them off.
pub(super) struct Programs(Option<OsString>);

impl Programs {
    /// Finds the programs that the repository whose top is `dir`, and those inside it, name.
    pub(super) fn find(dir: &Path) -> Self {
        Self::find_as(&["git"], dir)
    }

    fn find_as<S: AsRef<OsStr>>(program: &[S], dir: &Path) -> Self {
        let mut names = BTreeSet::new();
        collect_programs(program, dir, 0, &mut names);
        Self((!names.is_empty()).then(|| without_programs(&names)))
    }
}

/// Like [`git`], for several commands in a row: the repository's programs are looked up once.
pub(super) fn git_without(programs: &Programs, dir: &Path, args: &[&str]) -> Command {
    build(&["git"], dir, args, programs)
}

/// Returns a git command without a subcommand, for a git directory of ralph's own, whose settings
/// and attributes run no program.
pub(super) fn own_git(dir: &Path) -> Command {
    isolated(&["git"], dir)
}

fn build<S: AsRef<OsStr>>(
    program: &[S],
    dir: &Path,
    args: &[&str],
    programs: &Programs,
) -> Command {
    let mut command = isolated(program, dir);
    let Some((subcommand, rest)) = args.split_first() else {
        return command;
    };
    if let Some(value) = &programs.0 {
        command.env(PARAMETERS, value);
    }
    command.arg(subcommand);
    match *subcommand {
        "diff" => command.args(["--no-ext-diff", "--no-textconv"]),
        "log" => command.args(["--no-ext-diff", "--no-textconv", "--no-show-signature"]),
        _ => &mut command,
    };
    command.args(rest);
    command
}

/// Returns the program to run for the name `git`, or for none; any other name is left as it is.
pub(super) fn resolve(name: Option<&OsStr>) -> &OsStr {
    match name {
        Some(name) if name != "git" => name,
        _ => program::git().as_os_str(),
    }
}

fn isolated<S: AsRef<OsStr>>(program: &[S], dir: &Path) -> Command {
    let mut command = Command::new(resolve(program.first().map(AsRef::as_ref)));
    command.args(program.iter().skip(1)).current_dir(dir);
    for setting in CONFIG {
        command.args(["-c", setting]);
    }
    command.envs([
        ("LC_ALL", "C"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // No access to the network, not even for objects that are missing from a partial clone:
        // the repository says which program makes the connection.
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", "none"),
    ]);
    for name in UNSET {
        command.env_remove(name);
    }
    if cfg!(test) {
        command
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("XDG_CONFIG_HOME");
    }
    command
}

/// Adds the settings that name programs, in the repository at `dir` and in those inside it which git
/// examines as well.
fn collect_programs<S: AsRef<OsStr>>(
    program: &[S],
    dir: &Path,
    depth: usize,
    names: &mut BTreeSet<Vec<u8>>,
) {
    let mut command = isolated(program, dir);
    command.args([
        "config",
        "-z",
        "--name-only",
        "--get-regexp",
        PROGRAM_SETTINGS,
    ]);
    let output = command::run(&mut command, super::READ_MAX, command::TIMEOUT);
    if let Ok(output) = output {
        let found = output.stdout.split(|byte| *byte == 0);
        names.extend(found.filter(|name| !name.is_empty()).map(<[u8]>::to_vec));
    }
    if depth < DEPTH_MAX {
        for inner in recorded_repositories(dir).into_iter().take(INNER_MAX) {
            collect_programs(&["git"], &inner, depth + 1, names);
        }
    }
}

/// Returns the repositories inside the one whose top is `top` that its index records: submodules,
/// declared or not.
fn recorded_repositories(top: &Path) -> Vec<PathBuf> {
    let mut found: BTreeSet<PathBuf> = inner::submodules(top).into_iter().collect();
    if may_record_repositories(top) {
        let mut command = isolated(&["git"], top);
        command.args(["ls-files", "--stage", "-z"]);
        let output = command::run(&mut command, super::READ_MAX, command::TIMEOUT);
        let list = output.map(|output| output.stdout).unwrap_or_default();
        for entry in list.split(|byte| *byte == 0) {
            let path = entry.splitn(2, |byte| *byte == b'\t').nth(1);
            if let (true, Some(path)) = (entry.starts_with(GITLINK), path) {
                found.insert(OsStr::from_bytes(path).into());
            }
        }
    }
    let paths = found.into_iter().map(|path| top.join(path));
    paths.filter(|path| path.join(".git").exists()).collect()
}

/// The mode of an entry for another repository, as text and in the index.
const GITLINK: &[u8] = b"160000 ";
const GITLINK_BYTES: [u8; 4] = 0o160_000_u32.to_be_bytes();

/// Returns whether the index may have an entry for another repository. Looking for the bytes of the
/// mode is faster than a list of all entries, which most repositories do not need.
fn may_record_repositories(top: &Path) -> bool {
    let index = super::project::git_dir(top).map(|git| git.join("index"));
    let index = index.and_then(|index| regular_file::read(&index, INDEX_MAX, true).ok());
    // The end of a very long index is not searched, so it may have one.
    index.is_some_and(|(bytes, is_longer)| {
        is_longer || memmem::find(&bytes, &GITLINK_BYTES).is_some()
    })
}

/// Returns the value of the variable that overrides these settings, in addition to the user's own
/// overrides.
fn without_programs(names: &BTreeSet<Vec<u8>>) -> OsString {
    let mut text = std::env::var_os(PARAMETERS)
        .unwrap_or_default()
        .into_encoded_bytes();
    let mut add = |name: &[u8], value: &[u8]| {
        if !text.is_empty() {
            text.push(b' ');
        }
        quote(&mut text, name);
        text.push(b'=');
        quote(&mut text, value);
    };
    for name in names {
        let is_filter = name.starts_with(b"filter.");
        // A filter without a command is skipped. A merge driver must have one; that of a failed
        // merge makes ralph assume that the work is not saved.
        add(name, if is_filter { b"" } else { b"false" });
        if let (true, Some(end)) = (is_filter, name.iter().rposition(|byte| *byte == b'.')) {
            add(&[&name[..end], b".required"].concat(), b"false");
        }
    }
    OsStr::from_bytes(&text).to_owned()
}

/// Quotes bytes as git does in its environment variables.
fn quote(text: &mut Vec<u8>, bytes: &[u8]) {
    text.push(b'\'');
    for byte in bytes {
        match byte {
            b'\'' | b'!' => text.extend([b'\'', b'\\', *byte, b'\'']),
            _ => text.push(*byte),
        }
    }
    text.push(b'\'');
}
