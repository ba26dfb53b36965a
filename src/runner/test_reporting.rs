//! Makes test runners print the names of their tests, and reads the results of a check's tests.
//!
//! Only runners that read options from the environment can be asked. The options of the user follow
//! ralph's, so that they win, and lines that appear only because ralph asked are removed from the
//! check's log.

use super::Runner;
use super::input::JobKey;
use super::job::JobResult;
use crate::engine::event::CheckReport;
use crate::engine::look::SecondLook;
use crate::engine::test_names::MissingTests;
use crate::engine::test_run::{AddedLines, TestRun, TestRunReader};
use crate::os::regular_file;
use crate::proof::start_tests;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Makes pytest name every test in its summary. Without option, it names those that failed.
const PYTEST: (&str, &str) = ("PYTEST_ADDOPTS", "-rpsxXEf");

/// Makes `go test` print a line for every test.
const GO: (&str, &str) = ("GOFLAGS", "-v");

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

/// Maximum length of a line of output, in bytes.
const LINE_MAX: u64 = 64 << 10;

/// What a check was asked to report.
#[derive(Default)]
pub(super) struct TestReporting {
    /// Variables of the check's environment.
    pub(super) env: Vec<(String, String)>,
    /// Reports that the check's command names, with their state before it ran.
    reports: Vec<(PathBuf, Option<FileState>)>,
}

/// What changes if a file is written.
type FileState = (u64, u64, i64, i64);

impl TestReporting {
    /// Returns what to ask a command that runs in a workspace.
    pub(super) fn for_command(command: &str, workspace: &Path) -> Self {
        let mut reporting = Self::default();
        if !names_passed_tests(command, workspace) {
            reporting.ask(PYTEST, std::env::var(PYTEST.0).ok());
        }
        if prints_go_tests_on_request(command) {
            reporting.ask(GO, std::env::var(GO.0).ok().or_else(configured_go_flags));
        }
        reporting.reports = report_paths(command, workspace);
        reporting
    }

    fn ask(&mut self, (variable, option): (&str, &str), own: Option<String>) {
        let value = match own {
            Some(own) if !own.trim().is_empty() => format!("{option} {own}"),
            _ => option.to_owned(),
        };
        self.env.push((variable.to_owned(), value));
    }

    fn asked(&self, (variable, _): (&str, &str)) -> bool {
        self.env.iter().any(|(name, _)| name == variable)
    }

    /// Remembers the reports as they are, so that only new ones are read later. `locate` returns
    /// where the check writes a file.
    pub(super) fn remember_reports(&mut self, locate: impl Fn(&Path) -> PathBuf) {
        for (path, state) in &mut self.reports {
            *path = locate(path);
            *state = file_state(path);
        }
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
        if !run.names.is_empty() && !self.env.is_empty() {
            self.remove_added_lines(log, &run)?;
        }
        Ok(run)
    }

    fn remove_added_lines(&self, log: &Path, run: &TestRun) -> io::Result<()> {
        let mut added = AddedLines::new(self.asked(PYTEST), self.asked(GO), &run.names);
        let mut kept = Vec::new();
        let mut is_any_added = false;
        for_each_line(log, |line| {
            if added.is_added(&String::from_utf8_lossy(line)) {
                is_any_added = true;
            } else {
                kept.extend_from_slice(line);
            }
        })?;
        if is_any_added {
            regular_file::truncate(log)?.write_all(&kept)?;
        }
        Ok(())
    }
}

impl Runner<'_> {
    /// Adds the results of a check's tests to its report. Before the first iteration they are
    /// recorded, and later they are compared with the record.
    pub(super) fn add_tests(
        &mut self,
        key: JobKey,
        check: usize,
        log: &Path,
        result: &JobResult,
        report: &mut CheckReport,
    ) {
        let reporting = std::mem::take(&mut self.reporting);
        let plan = &self.rec.state.plan;
        let run = match reporting.read(log, result.bytes > plan.log_cap) {
            Ok(run) => run,
            Err(error) => {
                let detail = format!("cannot read the results of a check's tests: {error}");
                return self.rec.warn(&detail);
            }
        };
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

/// Returns whether pytest names the tests that passed because the user asked for it.
fn names_passed_tests(command: &str, workspace: &Path) -> bool {
    let own = std::env::var(PYTEST.0).unwrap_or_default();
    let files = PYTEST_FILES.iter().filter_map(|name| {
        let (bytes, _) = regular_file::read(&workspace.join(name), SETTINGS_MAX, true).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    let mut texts = [command.to_owned(), own].into_iter().chain(files);
    texts.any(|text| {
        let mut words = text.split(|c: char| c.is_whitespace() || "\"',=[]".contains(c));
        words.any(|word| {
            let letters = word.strip_prefix("-r");
            letters.is_some_and(|letters| {
                letters.contains(['p', 'P', 'A'])
                    && letters.chars().all(|c| c.is_ascii_alphabetic())
            })
        })
    })
}

/// Returns whether a command may run `go test` without printing the results of single tests.
/// Commands of their own for go, as `go vet`, are left alone.
fn prints_go_tests_on_request(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let runs_go = words.contains(&"go");
    let runs_tests = words.windows(2).any(|pair| pair == ["go", "test"]);
    let is_verbose = runs_go
        && words
            .iter()
            .any(|word| ["-v", "-json"].contains(word) || word.starts_with("-v="));
    (!runs_go || runs_tests) && !is_verbose
}

/// Returns the flags that the user has stored with `go env -w`, which the variable would hide.
fn configured_go_flags() -> Option<String> {
    let path = std::env::var_os("GOENV").map(PathBuf::from).or_else(|| {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.or_else(|| Some(std::env::home_dir()?.join(".config")));
        config.map(|config| config.join("go/env"))
    })?;
    let (bytes, _) = regular_file::read(&path, SETTINGS_MAX, true).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let flags = text.lines().find_map(|line| line.strip_prefix("GOFLAGS="));
    flags.map(|flags| flags.trim().to_owned())
}

/// Returns the XML files in the workspace that a command names: most runners get the path of their
/// report as an option.
fn report_paths(command: &str, workspace: &Path) -> Vec<(PathBuf, Option<FileState>)> {
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
    paths.into_iter().map(|path| (path, None)).collect()
}
