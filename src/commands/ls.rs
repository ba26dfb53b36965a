//! `ralph ls`: all loops.

use crate::cli::LsWords;
use crate::lifecycle::failure::{Failure, answer, warn};
use crate::lifecycle::handle::is_held;
use crate::lifecycle::session;
use crate::store::{Home, View, view_with_inbox};
use crate::ui::status::{Row, object, table};
use std::num::NonZero;

pub(crate) fn ls(words: &LsWords) -> Result<i32, Failure> {
    let home = Home::locate()?;
    let names = home.names()?;
    if words.names {
        for name in names {
            answer(&format!("{name}\n"))?;
        }
        return Ok(0);
    }
    if words.json {
        let object = |view: &View, held| {
            let directory = home
                .loop_dir(&view.header.name)
                .path()
                .display()
                .to_string();
            object(view, held, &directory).to_string()
        };
        answer(&format!("[{}]\n", each(&home, &names, object).join(",")))?;
        return Ok(0);
    }
    let rows = each(&home, &names, Row::of);
    if rows.is_empty() {
        answer("no loops yet; ralph run starts one\n")?;
    } else {
        answer(&table(&rows))?;
    }
    Ok(0)
}

/// Fewer loops are not worth a thread.
const WORTH_A_THREAD: usize = 64;

/// What is to be said of every loop that can be read, in the order of their names. Only that is kept: a thousand views
/// would be much to hold.
fn each<T: Send>(home: &Home, names: &[String], say: impl Fn(&View, bool) -> T + Sync) -> Vec<T> {
    let look = |name: &String| {
        let dir = home.loop_dir(name);
        // In this order: what a runner wrote before it let go is then in the view.
        let held = is_held(&dir);
        view_with_inbox(&dir)
            .map(|view| say(&view, held || session::has(&view.state)))
            .map_err(|error| warn(format!("{name}: {error}")))
            .ok()
    };
    let many = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = names.len().div_ceil(many).max(WORTH_A_THREAD);
    if names.len() <= share {
        return names.iter().filter_map(look).collect();
    }
    std::thread::scope(|scope| {
        let look = &look;
        let shares = names
            .chunks(share)
            .map(|names| scope.spawn(move || names.iter().filter_map(look).collect::<Vec<_>>()));
        let shares: Vec<_> = shares.collect();
        shares
            .into_iter()
            .flat_map(|share| share.join().unwrap_or_default())
            .collect()
    })
}
