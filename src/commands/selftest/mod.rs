//! `ralph selftest`: plays cheating agents against the user's own checks, and reports which of them
//! would get through.

mod arena;
mod cheat;
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
use arena::{Arena, Played, PlayedEnd};
use cheat::Cheat;
use report::{LabeledCheck, SelftestReport};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

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
    let arena = Arena::create(&workspace.path, &settings, checks.clone(), masks)?;
    let report = SelftestReport::new(args.json);
    Selftest {
        arena,
        report,
        checks,
        only: args.only.clone(),
    }
    .run()
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
        let start = self.arena.play("true", false, 2)?;
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
                .then(|| self.arena.play(&cheat.script, true, 1))
                .transpose()?;
            if played
                .as_ref()
                .is_some_and(|played| played.end == PlayedEnd::Interrupted)
            {
                return Ok(ExitCode::Stopped);
            }
            spoiled.push((cheat, played));
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
        let spoil = spoiled.iter().find(|(_, played)| {
            let red = |played: &Played, check| {
                played.after_agent(check).is_some_and(|run| !run.is_green())
            };
            let played = played.as_ref();
            played.is_some_and(|played| (0..self.checks.len()).any(|check| red(played, check)))
        });
        let spoil = match spoil {
            _ if starts_red => "",
            Some((cheat, _)) => &cheat.script,
            None => return self.report.finish(Some(
                "no check turned red when the source files were spoiled, so there is nothing that a cheat would have to hide",
            )),
        };
        for cheat in cheat::table() {
            let applies = cheat.class != "sources"
                && self.is_chosen(cheat)
                && (starts_red || !cheat.red)
                && self.arena.is_true(&cheat.when);
            if !applies {
                continue;
            }
            let spoil = if cheat.own { "" } else { spoil };
            let script = format!("{spoil}\n{}", cheat.script);
            let played = self.arena.play(&script, true, 1)?;
            if played.end == PlayedEnd::Interrupted {
                return Ok(ExitCode::Stopped);
            }
            self.report.cheat(cheat, played.end)?;
        }
        self.report.finish(None)
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
