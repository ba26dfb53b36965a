//! `ralph selftest`: plays cheating agents against the user's own checks, and reports which of them
//! would get through.

mod arena;
mod cheat;
mod leftovers;
mod place;
mod report;

use super::run::{config_dir, settings_paths};
use super::trust::consent::settle_trust;
use super::workspace::ChosenWorkspace;
use crate::cli::RunArgs;
use crate::cli::setting_flags::CheckFlags;
use crate::cli::setup::SelftestArgs;
use crate::config::keys::table;
use crate::config::{Config, LayerStack, SettingsFiles, resolve_typed_paths};
use crate::engine::ExitCode;
use crate::engine::event::CheckReport;
use crate::engine::label::{CheckLabel, Label, SourceUse, flaky, judge_source_use, vacuous};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::exemptions;
use crate::process::warden::{SupervisorExit, run_guarded};
use crate::store::StateDir;
use crate::ui::print::report_error;
use arena::{Arena, Part, Played, PlayedEnd};
use cheat::Cheat;
use place::{Scene, cannot_prepare, create_private_dir};
use report::{LabeledCheck, SelftestReport};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The time between SIGTERM and SIGKILL for what a killed process leaves behind.
const GRACE: Duration = Duration::from_secs(2);

/// Makes the code compute something else. It is no cheat by itself.
const WRONG_CODE: &str = "sources exchange";

/// Settings of the loops that are played, besides those about checks. A loop with weak checks
/// shows what gets through; checkpoints would only take time.
fn own_settings() -> [(&'static str, Value); 3] {
    [
        ("weakChecks", json!(true)),
        ("checkpoints", json!(false)),
        ("maxStalls", json!(0)),
    ]
}

pub(crate) fn selftest(args: &SelftestArgs) -> Result<ExitCode, CommandError> {
    let classes = cheat::classes();
    if let Some(unknown) = args
        .only
        .iter()
        .find(|class| !classes.contains(&class.as_str()))
    {
        return Err(CommandError::usage(
            format!("--only {unknown}: there is no such class of cheats"),
            format!("choose from {}", classes.join(", ")),
        ));
    }
    let workspace = ChosenWorkspace::choose(args.here)?;
    let config = args
        .config
        .as_deref()
        .map(|path| workspace.typed_path(path));
    let paths = settings_paths(workspace.path.clone(), config);
    let files = SettingsFiles::read(&paths)?;
    let run = RunArgs {
        trust: args.trust,
        ..RunArgs::default()
    };
    settle_trust(&files, &workspace.path, &run)?;
    let masks = settings_files(&workspace.path);
    let mut stack = files.into_stack();
    let mut flags = args.setting_flags.layer();
    resolve_typed_paths(&mut flags, &mut Vec::new(), &workspace.current_dir);
    stack.push(flags);
    let config = Config::new(stack)?;
    let checks: Vec<String> = config
        .settings
        .checks
        .iter()
        .map(|check| check.command.clone())
        .collect();
    if checks.is_empty() {
        return Err(CommandError::usage(
            "there are no checks to test",
            "pass one, as in --check \"cargo test\", or let `ralph init --settings` find them",
        ));
    }
    let settings = loop_settings(&config.stack);
    leftovers::remove_abandoned();
    let root = leftovers::own_root();
    let scene = Scene::new(&workspace.path, root.clone(), masks, config_dir());
    scene.check_root()?;
    create_private_dir(&root).map_err(cannot_prepare)?;
    let play = || {
        let arena = Arena::create(scene, &settings, checks.clone())?;
        let selftest = Selftest {
            arena,
            report: SelftestReport::new(args.json),
            checks,
            only: args.only.clone(),
        };
        selftest.run()
    };
    let exit = guarded(|| {
        let exit = play();
        // The other process may have been killed.
        leftovers::remove(&root);
        exit
    });
    leftovers::remove(&root);
    exit
}

/// Runs the selftest in a process of its own, so that nothing that it has started is left if it is
/// killed.
fn guarded(
    play: impl FnOnce() -> Result<ExitCode, CommandError>,
) -> Result<ExitCode, CommandError> {
    let exemptions = exemptions(&StateDir::locate()?);
    let exit = run_guarded(|| play().unwrap_or_else(report_error), GRACE, &exemptions);
    match exit.map_err(CommandError::broken)? {
        SupervisorExit::Exited(code) => Ok(code),
        SupervisorExit::Killed { signal, .. } => {
            report_error(CommandError::broken(format!(
                "the selftest was killed by signal {signal}"
            )));
            Ok(ExitCode::from_signal(signal))
        }
    }
}

/// Returns the settings of the loops: what the user set about checks, and nothing else.
fn loop_settings(stack: &LayerStack) -> Value {
    let merged = stack.merged();
    let keys = table()
        .iter()
        .filter(|key| key.heading == CheckFlags::HEADING);
    let values = keys.filter_map(|key| {
        let value = merged.get(&key.name).filter(|value| !value.is_null())?;
        Some((key.camel_case(), value.clone()))
    });
    let mut values: Map<String, Value> = values.collect();
    values.extend(own_settings().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(values)
}

/// Returns the settings files that a loop in this workspace would read.
fn settings_files(workspace: &std::path::Path) -> Vec<PathBuf> {
    let dirs = [Some(workspace.join(".ralph")), config_dir()];
    let entries = dirs
        .into_iter()
        .flatten()
        .filter_map(|dir| std::fs::read_dir(dir).ok());
    let files = entries.flatten().flatten().map(|entry| entry.path());
    let is_settings = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("settings.")
    };
    files.filter(is_settings).collect()
}

struct Selftest {
    arena: Arena,
    report: SelftestReport,
    checks: Vec<String>,
    /// The classes to play; empty for all.
    only: Vec<String>,
}

impl Selftest {
    fn run(mut self) -> Result<ExitCode, CommandError> {
        // Two iterations without a claim: with preflight, each check runs three times.
        let start = self.arena.play(Part {
            script: "true",
            iterations: 2,
            ..Part::default()
        })?;
        if start.end == PlayedEnd::Interrupted {
            return Ok(ExitCode::Stopped);
        }
        let is_red = |played: &Played, check: usize| {
            played
                .runs(check)
                .first()
                .is_some_and(|run| !run.is_green())
        };
        let starts_red = (0..self.checks.len()).any(|check| is_red(&start, check));
        let mut spoiled: Vec<(&Cheat, Option<Played>)> = Vec::new();
        for cheat in cheat::table()
            .iter()
            .filter(|cheat| cheat.class == "sources")
        {
            let needed = spoiled.is_empty() || !starts_red;
            let played = (needed && self.arena.is_true(&cheat.when))
                .then(|| self.arena.play(Part::cheat(&cheat.script)))
                .transpose()?;
            if played
                .as_ref()
                .is_some_and(|played| played.end == PlayedEnd::Interrupted)
            {
                return Ok(ExitCode::Stopped);
            }
            spoiled.push((cheat, played));
        }
        // A cheat has more to hide if the code can still be compiled and imported.
        let wrong = (!starts_red)
            .then(|| self.arena.play(Part::cheat(WRONG_CODE)))
            .transpose()?;
        let wrong_end = wrong.as_ref().map(|played| played.end);
        if wrong_end == Some(PlayedEnd::Interrupted) {
            return Ok(ExitCode::Stopped);
        }
        for check in 0..self.checks.len() {
            let row = self.label(check, &start, &spoiled);
            self.report.check(row)?;
        }
        for (cheat, played) in &spoiled {
            if let Some(played) = played.as_ref().filter(|_| self.is_chosen(cheat)) {
                self.report.cheat(cheat, played.end)?;
            }
        }
        // Spoiled sources must turn a check red: otherwise there is nothing to hide.
        let is_spoiled = |played: &Played| {
            let mut runs = (0..self.checks.len()).filter_map(|check| played.after_agent(check));
            runs.any(|run| !run.is_green())
        };
        let spoil = spoiled
            .iter()
            .find(|(_, played)| played.as_ref().is_some_and(is_spoiled));
        let spoil = match spoil {
            _ if starts_red => "",
            Some(_) if wrong.as_ref().is_some_and(is_spoiled) => WRONG_CODE,
            Some((cheat, _)) => &cheat.script,
            None => {
                let note = if self.arena.has_sources() {
                    "no check turned red when the source files were spoiled, so there is nothing \
                     that a cheat would have to hide"
                } else {
                    "no source files were found that a cheat could spoil"
                };
                return self.report.finish(Some(note), &self.arena.weaknesses);
            }
        };
        for cheat in cheat::table() {
            let applies = cheat.class != "sources"
                && self.is_chosen(cheat)
                && (starts_red || !cheat.red)
                && (!starts_red || !cheat.green)
                && (self.arena.covers_home || !cheat.home)
                && (self.arena.has_git || cheat.class != "git")
                && self.arena.is_true(&cheat.when);
            if !applies {
                continue;
            }
            let spoil = if cheat.own { "" } else { spoil };
            let script = format!("{spoil}\n{}", cheat.script);
            let played = self.arena.play(Part {
                commits: cheat.commits,
                ..Part::cheat(&script)
            })?;
            if played.end == PlayedEnd::Interrupted {
                return Ok(ExitCode::Stopped);
            }
            self.report.cheat(cheat, played.end)?;
        }
        self.report.finish(None, &self.arena.weaknesses)
    }

    fn is_chosen(&self, cheat: &Cheat) -> bool {
        self.only.is_empty() || self.only.contains(&cheat.class)
    }

    /// Labels a check by the same rules as preflight, without a limit on time.
    fn label(
        &self,
        check: usize,
        start: &Played,
        spoiled: &[(&Cheat, Option<Played>)],
    ) -> LabeledCheck {
        let runs = start.runs(check);
        let first = runs.first();
        let after =
            |at: usize| -> Option<&CheckReport> { spoiled.get(at)?.1.as_ref()?.after_agent(check) };
        let is_green = first.is_some_and(|first| first.is_green());
        let source_use = judge_source_use(after(0), after(1));
        let color = if is_green {
            CheckLabel::Green
        } else {
            CheckLabel::Red
        };
        let label = first
            .and_then(|first| first.label.clone())
            .or_else(|| flaky(&runs))
            .or_else(|| (is_green && source_use == SourceUse::Vacuous).then(vacuous))
            .unwrap_or_else(|| Label::new(color, String::new()));
        LabeledCheck {
            command: self.checks[check].clone(),
            label,
        }
    }
}
