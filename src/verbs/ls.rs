//! `ralph ls`: all loops.

use super::failure::{Failure, answer, warn};
use super::visit::is_held;
use crate::cli::LsWords;
use crate::show::status::{object, table};
use crate::store::{Home, View, view_with_inbox};
use serde_json::Value;

pub(super) fn ls(words: &LsWords) -> Result<i32, Failure> {
    let home = Home::locate()?;
    let names = home.names()?;
    if words.names {
        for name in names {
            answer(&format!("{name}\n"))?;
        }
        return Ok(0);
    }
    let mut loops: Vec<(View, bool)> = Vec::new();
    for name in &names {
        let dir = home.loop_dir(name);
        // In this order: what a runner wrote before it let go is then in the view.
        let held = is_held(&dir);
        match view_with_inbox(&dir) {
            Ok(view) => loops.push((view, held)),
            Err(error) => warn(format!("{name}: {error}")),
        }
    }
    if words.json {
        let directory = |view: &View| home.loop_dir(&view.header.name).path().display().to_string();
        let all = loops.iter().map(|(view, held)| object(view, *held, &directory(view)));
        answer(&format!("{}\n", Value::Array(all.collect())))?;
    } else if loops.is_empty() {
        answer("no loops yet; ralph run starts one\n")?;
    } else {
        answer(&table(&loops))?;
    }
    Ok(0)
}
