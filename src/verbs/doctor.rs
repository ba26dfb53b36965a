//! `ralph doctor`: what is here, what is missing, and what would get it.

mod programs;
mod report;
mod state;
mod system;
mod text;
mod workspace;

use super::failure::Failure;
use crate::show::console::colours;
use crate::show::say;
use crate::store::Home;
use report::Report;
use std::env;

pub(super) fn doctor(json: bool) -> Result<i32, Failure> {
    let here = env::current_dir().map_err(Failure::broken)?;
    let home = Home::locate()?;
    let Ok((agents, tools)) = programs::look(&here) else {
        // Somebody has pressed Ctrl-C.
        return Ok(130);
    };
    let report = Report::new(agents, tools, system::look(), state::look(&home), workspace::look(&here));
    if json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::broken)?;
        say(&format!("{text}\n"));
    } else {
        say(&text::text(&report, colours()));
    }
    Ok(i32::from(!report.ready))
}
