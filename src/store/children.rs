//! Finds a loop's children and ancestors, and all background loops.

use super::lock::is_locked;
use super::{
    Journal, LockHolder, LoopDir, LoopView, StateDir, cache, is_starting, lock_holder, loop_holder,
};
use std::fs;

/// Maximum number of ancestors to follow. Edited headers could otherwise form an endless cycle.
const GENERATIONS_MAX: usize = 32;

/// The starting and running loops that agents have created, each with its parent and the time of its
/// creation.
pub(crate) struct RunningLoops(Vec<(LoopDir, String, i64)>);

impl RunningLoops {
    /// Returns those that agents of the loop `parent` have created since `since_ms`.
    pub(crate) fn children_of(&self, parent: &str, since_ms: i64) -> Vec<LoopDir> {
        let children = self.0.iter().filter(|(dir, own, created_ms)| {
            dir.name() != parent && own == parent && *created_ms >= since_ms
        });
        children.map(|(dir, ..)| dir.clone()).collect()
    }
}

impl StateDir {
    /// Returns the starting and running loops that agents of the loop `parent` have created since `since_ms`, in
    /// milliseconds since 1970.
    pub(crate) fn running_children(&self, parent: &str, since_ms: i64) -> Vec<LoopDir> {
        self.running_loops().children_of(parent, since_ms)
    }

    /// Returns the loops that are starting or running now.
    pub(crate) fn running_loops(&self) -> RunningLoops {
        let names = self.loop_names().unwrap_or_default();
        let dirs = names.iter().map(|name| self.loop_dir(name));
        let running = dirs.filter(|dir| is_starting(dir) || loop_holder(dir).is_some());
        let loops = running.filter_map(|dir| {
            let header = cache::read(&dir).ok()?.header;
            Some((dir, header.parent?, header.created_ms))
        });
        RunningLoops(loops.collect())
    }

    /// Returns all loops, running or not, that agents of the loop `parent` have created since
    /// `since_ms`, in milliseconds since 1970.
    pub(crate) fn children(&self, parent: &str, since_ms: i64) -> Vec<(LoopDir, LoopView)> {
        let dirs = self
            .loop_names()
            .unwrap_or_default()
            .into_iter()
            .map(|name| self.loop_dir(&name));
        let readable = dirs.filter_map(|dir| cache::read(&dir).ok().map(|view| (dir, view)));
        readable
            .filter(|(dir, LoopView { header, .. })| {
                dir.name() != parent
                    && header.parent.as_deref() == Some(parent)
                    && header.created_ms >= since_ms
            })
            .collect()
    }

    /// Returns whether `ancestor` is `parent` or one of its ancestors; `false` if `parent` is
    /// `None`.
    pub(crate) fn is_ancestor(&self, ancestor: &str, parent: Option<String>) -> bool {
        let mut next = parent;
        for _ in 0..GENERATIONS_MAX {
            match next {
                Some(name) if name == ancestor => return true,
                Some(name) => next = self.parent(&name),
                None => return false,
            }
        }
        false
    }

    /// Returns the name of the loop whose agent started the loop `name`; `None` if no agent did.
    pub(crate) fn parent(&self, name: &str) -> Option<String> {
        cache::read(&self.loop_dir(name)).ok()?.header.parent
    }

    /// Returns the lock holders of all running background loops. A lock file alone proves nothing,
    /// because any process can write one: the loop must have a journal that was started in the
    /// background and is locked too.
    pub(crate) fn background_holders(&self) -> Vec<(LoopDir, LockHolder)> {
        let entries = fs::read_dir(self.root().join("loops"))
            .into_iter()
            .flatten()
            .flatten();
        let dirs = entries.map(|entry| LoopDir::new(entry.path()));
        dirs.filter_map(|dir| {
            let holder = lock_holder(&dir.lock()).filter(|holder| holder.background)?;
            let is_loop = is_locked(&dir.journal())
                && Journal::read_header(&dir)
                    .is_ok_and(|header| header.background && header.name == dir.name());
            is_loop.then_some((dir, holder))
        })
        .collect()
    }
}

pub(crate) fn loop_names(dirs: &[LoopDir]) -> Vec<String> {
    dirs.iter().map(|dir| dir.name().to_owned()).collect()
}
