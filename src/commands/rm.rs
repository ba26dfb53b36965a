//! `ralph rm`: loops that do not run go away, and nothing that is nowhere else goes with them unasked.

use crate::cli::RmWords;
use crate::engine::format::{bytes, plural, quoted};
use crate::engine::plan::Worktree;
use crate::engine::{State, Status};
use crate::git::worktree;
use crate::git::worktree::Only;
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::handle::Visit;
use crate::lifecycle::locks::lock_away;
use crate::lifecycle::placement::{clear_half_made, not_aimed};
use crate::os::disk;
use crate::store::children::names;
use crate::store::{Home, Lock, LoopDir, View, cache};
use crate::ui::say;
use std::path::{Path, PathBuf};

/// How many files a refusal names.
const SHOWN: usize = 3;

pub(crate) fn rm(words: &RmWords) -> Result<i32, Failure> {
    if words.ended {
        return rm_ended(words);
    }
    let mut names = words.name.clone();
    names.sort_unstable();
    names.dedup();
    // All are looked at before the first is touched.
    let mut doomed = Vec::new();
    for name in &names {
        doomed.push(Doomed::find(name, words)?);
    }
    for one in doomed {
        one.remove(words)?;
    }
    Ok(0)
}

/// Every loop that has ended, also those whose name was used again. What stands against one keeps that one.
fn rm_ended(words: &RmWords) -> Result<i32, Failure> {
    let home = Home::locate()?;
    clear_half_made(&home);
    let (mut count, mut freed) = (0, 0);
    let old = words
        .older_than
        .map_or(0, |span| i64::try_from(span.0).unwrap_or(i64::MAX));
    let before = jiff::Timestamp::now().as_millisecond().saturating_sub(old);
    let loops = home.names()?.into_iter().map(|name| home.loop_dir(&name));
    for dir in loops.chain(home.archived()) {
        let Ok(state) = cache::read(&dir).map(|view| view.state) else {
            warn(format!(
                "{} cannot be read, and stays",
                dir.path().display()
            ));
            continue;
        };
        let waits = matches!(state.status(false), Status::Blocked | Status::Waiting);
        if state.outcome().is_none() || waits || state.wall_ms > before {
            continue;
        }
        match Doomed::ended(&home, dir, words).and_then(|one| one.remove(words)) {
            Ok(bytes) => (count, freed) = (count + 1, freed + bytes),
            Err(failure) => warn(format!("not removed: {}", failure.error())),
        }
    }
    say(&format!(
        "{} removed, {} freed\n",
        plural(count, "loop"),
        bytes(freed)
    ));
    Ok(0)
}

/// A loop that may go: its lock is held, and nothing stands against it.
struct Doomed {
    home: Home,
    dir: LoopDir,
    state: State,
    _lock: Lock,
}

impl Doomed {
    fn find(name: &str, words: &RmWords) -> Result<Self, Failure> {
        let visit = Visit::as_operator(name)?;
        if visit.status() == Status::Running {
            return Err(Failure::usage(
                format!("the loop {name:?} is running"),
                format!("ralph stop {name} first"),
            ));
        }
        Self::ended(&visit.home, visit.dir, words)
    }

    fn ended(home: &Home, dir: LoopDir, words: &RmWords) -> Result<Self, Failure> {
        let lock = lock_away(&dir)?;
        // As it is now that nobody else can change it.
        let View { header, state, .. } = cache::read(&dir)?;
        let name = dir.name();
        // Those of a loop in the archive may be those of the one that has its name now.
        if home.loop_dir(name) == dir {
            let mut children = names(&home.living_children(name, header.created_ms));
            // Those that go, too, are looked at for themselves; who holds their locks is this very process.
            children.retain(|child| !words.name.contains(child));
            if !children.is_empty() {
                let [all, stop] = [children.join(", "), children.join(" and ralph stop ")];
                return Err(Failure::usage(
                    format!("child loops of {name:?} are still running: {all}"),
                    format!(
                        "ralph stop {stop}, or ralph stop {name} if it has not ended, then say it again"
                    ),
                ));
            }
        }
        if let Some(own) = &state.plan.worktree {
            may_go(dir.name(), own, words)?;
        }
        Ok(Self {
            home: home.clone(),
            dir,
            state,
            _lock: lock,
        })
    }

    /// Removes it, and says how many bytes that freed.
    fn remove(self, words: &RmWords) -> Result<u64, Failure> {
        let name = self.dir.name().to_owned();
        let mut said = Vec::new();
        let mut freed = 0;
        if let Some(own) = self.state.plan.worktree.as_ref().filter(|_| words.worktree) {
            freed += disk::usage(&own.path);
            let gone = worktree::remove(own, words.force);
            gone.map_err(|why| {
                Failure::usage(
                    format!("the worktree of {name:?} stays: {why}"),
                    format!(
                        "look into {}; --force removes it all the same",
                        own.path.display()
                    ),
                )
            })?;
            said.push(format!("worktree {}", own.path.display()));
            said.extend(remove_branch(own));
        } else if let Some(own) = self
            .state
            .plan
            .worktree
            .as_ref()
            .filter(|own| own.path.exists())
        {
            let path = quoted(&own.path.to_string_lossy());
            say(&format!(
                "kept the worktree {path} on {}; git worktree remove {path} removes it\n",
                own.branch
            ));
        }
        freed += disk::usage(self.dir.path());
        let place = self.out_of_the_way()?;
        std::fs::remove_dir_all(&place).map_err(|error| {
            Failure::broken(format!("cannot remove all of {}: {error}", place.display()))
        })?;
        let with = if said.is_empty() {
            String::new()
        } else {
            format!(" with its {}", said.join(" and its "))
        };
        say(&format!(
            "removed ralph loop {name}{with}: {} freed\n",
            bytes(freed)
        ));
        Ok(freed)
    }

    /// Moves it to where no verb looks for it, at once: a crash leaves no half of a loop behind.
    fn out_of_the_way(&self) -> Result<PathBuf, Failure> {
        let living = self.home.loop_dir(self.dir.name());
        if living == self.dir {
            Ok(self.home.archive(self.dir.name())?)
        } else {
            Ok(self.dir.path().to_owned())
        }
    }
}

/// A branch that was made for the loop goes with its worktree; what git has against it is told.
fn remove_branch(own: &Worktree) -> Option<String> {
    if !own.new_branch {
        say(&format!(
            "the branch {} stays: it was there before\n",
            own.branch
        ));
        return None;
    }
    match worktree::delete_branch(own) {
        Ok(tip) => {
            tip.map(|tip| format!("branch {} (was {})", own.branch, &tip[..7.min(tip.len())]))
        }
        Err(why) => {
            warn(format!("the branch {} stays: {why}", own.branch));
            None
        }
    }
}

/// Whether a loop with a worktree may go with these words.
fn may_go(name: &str, own: &Worktree, words: &RmWords) -> Result<(), Failure> {
    if !words.worktree {
        if words.keep_worktree || !own.path.exists() {
            return Ok(());
        }
        return Err(Failure::usage(
            format!("the loop {name:?} has a worktree: {}", own.path.display()),
            format!(
                "ralph rm {name} --worktree removes it and its branch, --keep-worktree leaves it there"
            ),
        ));
    }
    not_aimed()?;
    if is_inside(&own.path) {
        return Err(Failure::usage(
            format!("this is the worktree of {name:?}: {}", own.path.display()),
            "leave it first: cd somewhere else",
        ));
    }
    if words.force {
        return Ok(());
    }
    match worktree::only_here(own) {
        Ok(only) if only.is_empty() => Ok(()),
        Ok(only) => Err(Failure::usage(
            format!(
                "the worktree of {name:?} has work that is nowhere else: {}",
                in_words(&only)
            ),
            format!(
                "git merge {} or push it, and commit what is left in {}; --force removes it all the same",
                quoted(&own.branch),
                own.path.display()
            ),
        )),
        Err(why) => Err(Failure::usage(
            format!(
                "nobody can tell whether the worktree of {name:?} has work that is nowhere else: {why}"
            ),
            format!(
                "look into {}; --force removes it all the same",
                own.path.display()
            ),
        )),
    }
}

fn in_words(only: &Only) -> String {
    let mut parts = Vec::new();
    if only.commits > 0 {
        parts.push(plural(u64::from(only.commits), "commit"));
    }
    if !only.files.is_empty() {
        let names = only.files[..SHOWN.min(only.files.len())].join(", ");
        let more = if only.files.len() > SHOWN {
            ", …"
        } else {
            ""
        };
        parts.push(format!(
            "{} not committed ({names}{more})",
            plural(only.files.len() as u64, "file")
        ));
    }
    parts.join(" and ")
}

/// Whether the user stands in this directory.
fn is_inside(path: &Path) -> bool {
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    let there = std::fs::canonicalize(path);
    matches!((here, there), (Ok(here), Ok(there)) if here.starts_with(&there))
}
