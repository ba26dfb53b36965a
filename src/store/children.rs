//! Which loops belong together: who was started by whose agent, and who is registered as living in the background.

use super::{Holder, Home, LoopDir, View, cache, holder};
use std::fs;

/// No loop has more ancestors: a circle of names, made by hand, must not be followed for ever.
const GENERATIONS: usize = 32;

impl Home {
    /// The loops that were started by an agent of the loop called this, since this time, and are at work.
    pub fn living_children(&self, parent: &str, since_ms: i64) -> Vec<LoopDir> {
        let names = self.names().unwrap_or_default();
        let mut dirs: Vec<LoopDir> = names.iter().map(|name| self.loop_dir(name)).collect();
        dirs.retain(|dir| {
            dir.name() != parent
                && holder(&dir.lock()).is_some()
                && cache::read(dir).is_ok_and(|view| {
                    view.header.parent.as_deref() == Some(parent)
                        && view.header.created_ms >= since_ms
                })
        });
        dirs
    }

    /// The loops that were started by an agent of the loop called this, since this time, whatever became of them.
    pub fn children(&self, parent: &str, since_ms: i64) -> Vec<(LoopDir, View)> {
        let dirs = self
            .names()
            .unwrap_or_default()
            .into_iter()
            .map(|name| self.loop_dir(&name));
        let known = dirs.filter_map(|dir| cache::read(&dir).ok().map(|view| (dir, view)));
        known
            .filter(|(dir, View { header, .. })| {
                dir.name() != parent
                    && header.parent.as_deref() == Some(parent)
                    && header.created_ms >= since_ms
            })
            .collect()
    }

    /// Whether one loop is the other's parent, or that one's, and so on.
    pub fn is_ancestor(&self, elder: &str, of: Option<String>) -> bool {
        let mut next = of;
        for _ in 0..GENERATIONS {
            match next {
                Some(name) if name == elder => return true,
                Some(name) => next = self.parent(&name),
                None => return false,
            }
        }
        false
    }

    /// The loop whose agent started this one.
    pub fn parent(&self, name: &str) -> Option<String> {
        cache::read(&self.loop_dir(name)).ok()?.header.parent
    }

    /// Who holds the lock of a loop in the background, whatever that loop is called.
    pub fn in_background(&self) -> Vec<Holder> {
        let entries = fs::read_dir(self.root().join("loops"))
            .into_iter()
            .flatten()
            .flatten();
        let locks = entries.map(|entry| LoopDir::at(entry.path()).lock());
        locks
            .filter_map(|lock| holder(&lock))
            .filter(|holder| holder.background)
            .collect()
    }
}

/// The names of some loops.
pub fn names(dirs: &[LoopDir]) -> Vec<String> {
    dirs.iter().map(|dir| dir.name().to_owned()).collect()
}
