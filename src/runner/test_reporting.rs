//! Makes test runners print the names of their tests, and reads the results of a check's tests.
//!
//! Only runners that read options from the environment can be asked. The options of the user follow
//! ralph's, so that they win, and lines that appear only because ralph asked are removed from the
//! check's log.

use super::Runner;
use super::input::JobKey;
use super::job::JobResult;
use crate::engine::added_lines::{AskedGo, AskedNames, AskedPytest, without_added_lines};
use crate::engine::event::CheckReport;
use crate::engine::look::SecondLook;
use crate::engine::test_names::MissingTests;
use crate::engine::test_run::{TestRun, TestRunReader};
use crate::os::regular_file;
use crate::proof::start_tests;
use crate::proof::view::View;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// The variable with options for pytest. It prints rows for tests that failed or had errors, unless
/// the project's settings ask for others; ralph asks for those that passed as well.
const PYTEST: &str = "PYTEST_ADDOPTS";
const PYTEST_ROWS: &str = "fE";

/// The variable with options for go. Unlike `-v`, this one means nothing to other commands than
/// `go test`.
const GO: (&str, &str) = ("GOFLAGS", "-test.v");

/// Files at the top of a workspace with options for pytest.
const PYTEST_FILES: [&str; 7] = [
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
];

/// Maximum size of a settings file that is searched for options, in bytes.
const SETTINGS_MAX: u64 = 1 << 20;

/// Maximum number of reports that are read, and the maximum size of each in bytes.
const REPORTS_MAX: usize = 8;
const REPORT_MAX: u64 = 64 << 20;

/// Maximum size of a log from which lines are removed, in bytes.
const LOG_MAX: u64 = 512 << 20;

/// Maximum length of a line of output, in bytes.
const LINE_MAX: u64 = 64 << 10;

/// What a check was asked to report.
#[derive(Default)]
pub(super) struct TestReporting {
    /// Variables of the check's environment.
    pub(super) env: Vec<(String, String)>,
    asked: AskedNames,
    /// Reports that the check's command names, with their state before it ran.
    reports: Vec<(PathBuf, Option<FileState>)>,
}

/// What changes if a file is written.
type FileState = (u64, u64, i64, i64);

impl TestReporting {
    /// Returns what to ask a command that is about to run in a workspace, or in a view of it.
    pub(super) fn for_command(command: &str, workspace: &Path, view: Option<&View>) -> Self {
        let files = CheckFiles { workspace, view };
        let mut reporting = Self::default();
        reporting.ask_pytest(command, &files);
        reporting.ask_go(command, &files);
        for path in report_paths(command, workspace) {
            let path = view.map_or_else(|| path.clone(), |view| view.written_path(&path));
            let state = file_state(&path);
            reporting.reports.push((path, state));
        }
        reporting
    }

    fn ask_pytest(&mut self, command: &str, files: &CheckFiles<'_>) {
        let own = std::env::var(PYTEST).ok();
        let settings: Vec<String> = PYTEST_FILES
            .iter()
            .filter_map(|name| report_letters(&files.read(&files.workspace.join(name))?))
            .collect();
        let typed = [Some(command), own.as_deref()];
        let typed = typed.into_iter().flatten().filter_map(report_letters);
        let letters: String = typed.chain(settings.iter().cloned()).collect();
        if letters.contains(['p', 'P', 'A']) {
            return;
        }
        let rows = settings.first().map_or(PYTEST_ROWS, String::as_str);
        self.set(PYTEST, &format!("-r{rows}pX"), own);
        self.asked.pytest = Some(AskedPytest {
            shows_xpass: letters.contains(['X', 'a']),
        });
    }

    fn ask_go(&mut self, command: &str, files: &CheckFiles<'_>) {
        self.asked.go = how_go_tests_run(command);
        if self.asked.go.is_some() {
            let own = std::env::var(GO.0).ok();
            self.set(GO.0, GO.1, own.or_else(|| configured_go_flags(files)));
        }
    }

    /// Sets a variable to an option, and to those of the user after it, which win.
    fn set(&mut self, variable: &str, option: &str, own: Option<String>) {
        let value = match own {
            Some(own) if !own.trim().is_empty() => format!("{option} {own}"),
            _ => option.to_owned(),
        };
        self.env.push((variable.to_owned(), value));
    }

    /// Returns the reports that the check has written.
    fn written_reports(&self) -> Vec<String> {
        let written = self.reports.iter().filter(|(path, before)| {
            let now = file_state(path);
            now.is_some() && now != *before
        });
        let texts = written.filter_map(|(path, _)| {
            let (bytes, more) = regular_file::read(path, REPORT_MAX, false).ok()?;
            (!more).then(|| String::from_utf8_lossy(&bytes).into_owned())
        });
        texts.collect()
    }

    /// Reads the results of a check's tests from its log and its reports, and removes from the log
    /// what was printed only for this.
    pub(super) fn read(&self, log: &Path, is_log_cut: bool) -> io::Result<TestRun> {
        let mut reader = TestRunReader::default();
        for_each_line(log, |line| reader.line(&String::from_utf8_lossy(line)))?;
        let mut run = reader.finish(&self.written_reports());
        run.names.is_cut |= is_log_cut;
        if self.asked != AskedNames::default() && run != TestRun::default() {
            let (output, is_longer) = regular_file::read(log, LOG_MAX, false)?;
            if let Some(kept) = without_added_lines(&output, self.asked).filter(|_| !is_longer) {
                regular_file::truncate(log)?.write_all(&kept)?;
            }
        }
        Ok(run)
    }
}

/// The files that a check sees.
struct CheckFiles<'a> {
    workspace: &'a Path,
    view: Option<&'a View>,
}

impl CheckFiles<'_> {
    /// Returns the text of a settings file; `None` if there is none.
    fn read(&self, path: &Path) -> Option<String> {
        let path = match self.view {
            Some(view) => view.shown_path(path)?,
            None => path.to_owned(),
        };
        let (bytes, _) = regular_file::read(&path, SETTINGS_MAX, true).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Runner<'_> {
    /// Reads the results of a check's tests, and removes from its log what was printed only for
    /// this; `None` if the log cannot be read.
    pub(super) fn read_tests(&mut self, log: &Path, result: &JobResult) -> Option<TestRun> {
        let reporting = std::mem::take(&mut self.reporting);
        match reporting.read(log, result.bytes > self.rec.state.plan.log_cap) {
            Ok(run) => Some(run),
            Err(error) => {
                let detail = format!("cannot read the results of a check's tests: {error}");
                self.rec.warn(&detail);
                None
            }
        }
    }

    /// Adds the results of a check's tests to its report. Before the first iteration they are
    /// recorded, and later they are compared with the record.
    pub(super) fn add_tests(
        &mut self,
        key: JobKey,
        check: usize,
        run: &TestRun,
        report: &mut CheckReport,
    ) {
        let plan = &self.rec.state.plan;
        report.tests = run.counts;
        if plan.proof.second_look == SecondLook::Never || matches!(key, JobKey::Probe(..)) {
            return;
        }
        let (dir, slug) = (self.rec.dir.path(), &plan.proof.checks[check].slug);
        if matches!(key, JobKey::Check(0, _)) {
            match start_tests::record(dir, slug, &run.names) {
                Ok(recorded) => report.recorded_tests = recorded,
                Err(error) => {
                    let detail = format!("cannot record the tests of the start: {error}");
                    self.rec.warn(&detail);
                }
            }
            return;
        }
        let state = &self.rec.state;
        if let Some(recorded) = state.start_names(check).filter(|_| report.is_green()) {
            let counts = state.start_tests(check);
            report.missing_tests = match start_tests::open(dir, slug, recorded) {
                Some(start) => run.names.compare(run.counts, &start, counts),
                None => Some(MissingTests::unreadable(recorded)),
            };
        }
    }
}

/// Passes each line of a file, with its end, to `act`. Longer lines than [`LINE_MAX`] are split.
fn for_each_line(path: &Path, mut act: impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader: BufReader<File> = BufReader::new(regular_file::open(path, false)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = io::Read::take(&mut reader, LINE_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        act(&line);
    }
}

fn file_state(path: &Path) -> Option<FileState> {
    let meta = fs::symlink_metadata(path).ok()?;
    meta.is_file()
        .then(|| (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()))
}

/// Returns the letters of the options `-r` of pytest in a text, such as a command or a settings file;
/// `None` if there are none.
fn report_letters(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "\"',=[]".contains(c));
    let options = words.filter_map(|word| word.strip_prefix("-r"));
    let is_letter = |c: char| "fFeEsSxXpPwaAN".contains(c);
    let letters: String = options
        .filter(|letters| letters.chars().all(is_letter))
        .collect();
    (!letters.is_empty()).then_some(letters)
}

/// Returns how a command may run `go test` without printing the results of single tests; `None` if
/// it does not. Commands of their own for go, as `go vet`, are left alone.
fn how_go_tests_run(command: &str) -> Option<AskedGo> {
    let words: Vec<&str> = command.split_whitespace().collect();
    if !words.contains(&"go") {
        return Some(AskedGo::Unknown);
    }
    let test = words.windows(2).position(|pair| pair == ["go", "test"])?;
    let is_verbose = |word: &&str| ["-v", "-json"].contains(word) || word.starts_with("-v=");
    if words.iter().any(is_verbose) {
        return None;
    }
    let is_operator = |word: &&&str| word.starts_with(['|', '&', ';', '>']);
    let mut arguments = words[test + 2..]
        .iter()
        .take_while(|word| !is_operator(word));
    let names_package = |word: &&str| !word.starts_with('-') && word.contains(['.', '/']);
    Some(if arguments.any(names_package) {
        AskedGo::Packages
    } else {
        AskedGo::Directory
    })
}

/// Returns the flags that the user has stored with `go env -w`, which the variable would hide.
fn configured_go_flags(files: &CheckFiles<'_>) -> Option<String> {
    let path = std::env::var_os("GOENV").map(PathBuf::from).or_else(|| {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.or_else(|| Some(std::env::home_dir()?.join(".config")));
        config.map(|config| config.join("go/env"))
    })?;
    let text = files.read(&path)?;
    let flags = text.lines().find_map(|line| line.strip_prefix("GOFLAGS="));
    flags.map(|flags| flags.trim().to_owned())
}

/// Returns the XML files in the workspace that a command names: most runners get the path of their
/// report as an option.
fn report_paths(command: &str, workspace: &Path) -> Vec<PathBuf> {
    let words = command.split(|c: char| c.is_whitespace() || "\"'=,;:()".contains(c));
    let mut paths: Vec<PathBuf> = words
        .filter(|word| Path::new(word).extension() == Some(OsStr::new("xml")))
        .map(|word| workspace.join(word))
        .filter(|path| {
            let is_up = |part: Component<'_>| part == Component::ParentDir;
            path.starts_with(workspace) && !path.components().any(is_up)
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths.truncate(REPORTS_MAX);
    paths
}
