//! `ralph report`: writes a report about a loop, or about all loops of some time.

use super::atomic_file::write_atomically;
use super::open_browser::open_browser;
use super::open_loop::open_in;
use crate::agent::redact::Redactor;
use crate::cli::report::ReportArgs;
use crate::engine::{ExitCode, Liveness};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::read_loop;
use crate::os::regular_file;
use crate::runner::receipt::build;
use crate::store::{LoopDir, StateDir, StoreError};
use crate::ui::age::now_ms;
use crate::ui::print::{note, print_output, warn};
use crate::ui::report::{
    HTML_START, JUNIT_START, LoopReport, MARKDOWN_START, annotations, job_summary, junit, markdown,
    page,
};
use jiff::Timestamp;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    let found = match (&args.name, args.since) {
        (Some(name), _) => ReportedLoops::one(state_dir, name)?,
        (None, since) => ReportedLoops::since(&state_dir, since.unwrap_or_default().0)?,
    };
    if let Some(path) = &args.junit {
        write_file(path, &junit(&found.loops), args.force, JUNIT_START)?;
    }
    if args.github {
        append_job_summary(&found)?;
        print_output(&annotations(&found.loops))?;
    }
    let is_enough = args.github || args.junit.is_some();
    if is_enough && args.output.is_none() && !args.md && !args.open {
        return Ok(ExitCode::Success);
    }
    let (text, start, extension) = if args.md {
        (markdown(&found.loops, &found.title), MARKDOWN_START, "md")
    } else {
        let redact = |at: usize, text: &str| found.redactors[at].redact_text(text).into_owned();
        let text = page(&found.loops, &found.title, &redact);
        (text, HTML_START, "html")
    };
    let path = match &args.output {
        Some(path) if path == Path::new("-") => {
            print_output(&text)?;
            return Ok(ExitCode::Success);
        }
        Some(path) => path.clone(),
        None => found.default_path(extension),
    };
    write_file(&path, &text, args.force, start)?;
    print_output(&format!("{}\n", path.display()))?;
    if args.open {
        let path = fs::canonicalize(&path).unwrap_or(path);
        open_browser(path.as_os_str())?;
    }
    Ok(ExitCode::Success)
}

/// The loops to report.
struct ReportedLoops {
    loops: Vec<LoopReport>,
    title: String,
    /// The name of the report's file, without its ending.
    stem: String,
    /// The directory for a report whose place is not given; `None` for the current one.
    directory: Option<PathBuf>,
    /// The redactors of the loops, in the same order.
    redactors: Vec<Redactor>,
}

impl ReportedLoops {
    fn one(state_dir: StateDir, name: &str) -> Result<Self, CommandError> {
        let (dir, liveness, is_archived) = match state_dir.find_loop(name) {
            Ok(_) => {
                let handle = open_in(state_dir, name)?;
                (handle.dir, handle.liveness, false)
            }
            Err(error) => match state_dir.find_archived(name) {
                Some(dir) => (dir, Liveness::Idle, true),
                None => return Err(error.into()),
            },
        };
        let (report, redactor) = read_report(&dir, liveness, is_archived)?;
        let is_working_here = liveness != Liveness::Idle
            && std::env::current_dir().is_ok_and(|here| report.works_in(&here));
        Ok(Self {
            loops: vec![report],
            title: format!("{name} · ralph report"),
            stem: format!("{name}-report"),
            directory: is_working_here.then(|| dir.path().to_owned()),
            redactors: vec![redactor],
        })
    }

    /// Finds all loops with an event in the last `ms` milliseconds: those that need a person first,
    /// then the newest.
    fn since(state_dir: &StateDir, ms: u64) -> Result<Self, CommandError> {
        let start_ms = now_ms().saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX));
        let names = state_dir.loop_names()?;
        let present = names.iter().map(|name| (state_dir.loop_dir(name), false));
        let archived = state_dir
            .archived_loops()
            .into_iter()
            .map(|dir| (dir, true));
        let mut loops = Vec::new();
        for (dir, is_archived) in present.chain(archived) {
            if !is_newer(&dir, start_ms) {
                continue;
            }
            let liveness = match read_loop(&dir) {
                Ok((_, liveness)) => liveness,
                Err(error) => {
                    warn(format!("{}: {error}", dir.name()));
                    continue;
                }
            };
            match read_report(&dir, liveness, is_archived) {
                Ok(found) if found.0.last_event_ms() >= start_ms => loops.push(found),
                Ok(_) => {}
                Err(error) => warn(format!("{}: {error}", dir.name())),
            }
        }
        loops.sort_by_key(|(report, _)| {
            let age = std::cmp::Reverse(report.last_event_ms());
            (report.urgency(), age)
        });
        let (loops, redactors) = loops.into_iter().unzip();
        Ok(Self {
            loops,
            title: format!("Loops of the last {}", crate::engine::format::duration(ms)),
            stem: "ralph-report".into(),
            directory: None,
            redactors,
        })
    }

    fn default_path(&self, extension: &str) -> PathBuf {
        let name = format!("{}.{extension}", self.stem);
        self.directory
            .as_ref()
            .map_or_else(|| name.clone().into(), |dir| dir.join(&name))
    }
}

/// Returns whether a loop's journal was written to after this time. The journal itself decides what
/// counts; this only saves reading old ones.
fn is_newer(dir: &LoopDir, start_ms: i64) -> bool {
    let changed = fs::metadata(dir.journal()).and_then(|data| data.modified());
    let changed = changed.ok().and_then(|time| Timestamp::try_from(time).ok());
    changed.is_none_or(|time| time.as_millisecond() >= start_ms)
}

fn read_report(
    dir: &LoopDir,
    liveness: Liveness,
    is_archived: bool,
) -> Result<(LoopReport, Redactor), StoreError> {
    let (view, _) = read_loop(dir)?;
    let redactor = Redactor::for_plan(&view.state.plan);
    let has_ended = view.state.outcome().is_some() && liveness == Liveness::Idle;
    let receipt = has_ended.then(|| build(dir, &redactor)).transpose()?;
    let report = LoopReport::read(dir, liveness, receipt, is_archived)?;
    Ok((report, redactor))
}

/// Writes a report. Overwrites a file only if it begins like one, or with `force`.
fn write_file(path: &Path, text: &str, force: bool, start: &str) -> Result<(), CommandError> {
    let is_report = regular_file::read(path, start.len() as u64, false)
        .is_ok_and(|(bytes, _)| bytes == start.as_bytes());
    write_atomically(path, &path.display().to_string(), text, force || is_report)?;
    Ok(())
}

fn append_job_summary(found: &ReportedLoops) -> Result<(), CommandError> {
    let path = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    let Some(path) = path else {
        return Err(CommandError::usage(
            "GITHUB_STEP_SUMMARY is not set, so there is no job summary",
            "--github works in GitHub Actions; elsewhere, use --md",
        ));
    };
    let path = PathBuf::from(path);
    let text = job_summary(&found.loops, &found.title);
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| {
            CommandError::broken(format!("cannot write {}: {error}", path.display()))
        })?;
    note("wrote the job summary");
    Ok(())
}
