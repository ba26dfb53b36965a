//! `ralph ls`: all loops.

use super::failure::{Failure, answer, warn};
use super::visit::is_held;
use crate::cli::LsWords;
use crate::show::status::{object, table};
use crate::store::{Home, View, view_with_inbox};
use serde_json::Value;
use std::num::NonZero;

pub(super) fn ls(words: &LsWords) -> Result<i32, Failure> {
    let home = Home::locate()?;
    let names = home.names()?;
    if words.names {
        for name in names {
            answer(&format!("{name}\n"))?;
        }
        return Ok(0);
    }
    let loops = views(&home, &names);
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

/// Fewer loops are not worth a thread.
const WORTH_A_THREAD: usize = 64;

/// All loops that can be read, in the order of their names.
fn views(home: &Home, names: &[String]) -> Vec<(View, bool)> {
    let look = |name: &String| {
        let dir = home.loop_dir(name);
        // In this order: what a runner wrote before it let go is then in the view.
        let held = is_held(&dir);
        view_with_inbox(&dir).map(|view| (view, held)).map_err(|error| warn(format!("{name}: {error}"))).ok()
    };
    let many = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = names.len().div_ceil(many).max(WORTH_A_THREAD);
    if names.len() <= share {
        return names.iter().filter_map(look).collect();
    }
    std::thread::scope(|scope| {
        let shares = names
            .chunks(share)
            .map(|names| scope.spawn(move || names.iter().filter_map(look).collect::<Vec<_>>()));
        let shares: Vec<_> = shares.collect();
        shares.into_iter().flat_map(|share| share.join().unwrap_or_default()).collect()
    })
}
