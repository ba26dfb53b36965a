//! `ralph doctor`: what is here, what is missing, and what would get it.

mod programs;
mod report;
mod state;
mod system;
mod text;
mod workspace;

use super::failure::Failure;
use super::run::places;
use crate::config::agents::presets;
use crate::config::settings::Settings;
use crate::config::{Stack, Wrong};
use crate::show::console::colours;
use crate::show::say;
use crate::store::Home;
use report::Report;
use std::env;
use std::path::Path;

pub(super) fn doctor(json: bool) -> Result<i32, Failure> {
    let here = env::current_dir().map_err(Failure::broken)?;
    let home = Home::locate()?;
    let (settings, wrong) = settings(&here);
    let known = presets(&settings.agents)?;
    let Ok((agents, tools)) = programs::look(&here, known) else {
        // Somebody has pressed Ctrl-C.
        return Ok(130);
    };
    let state = state::look(&home, settings.min_free.0);
    let report = Report::new(agents, tools, system::look(), state, workspace::look(&here, wrong));
    if json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::broken)?;
        say(&format!("{text}\n"));
    } else {
        say(&text::text(&report, colours()));
    }
    Ok(i32::from(!report.ready))
}

/// The settings that hold here; where one is wrong, the defaults and what is wrong.
fn settings(here: &Path) -> (Settings, Option<String>) {
    let stack = Stack::load(&places(here.to_owned(), None));
    let own = stack.and_then(|stack| {
        let settings = Settings::of(&stack);
        presets(&settings.agents).map(|_| settings)
    });
    match own {
        Ok(settings) => (settings, None),
        Err(Wrong { error, .. }) => (Settings::of(&Stack::defaults()), Some(error)),
    }
}
