//! The page of one loop: its tabs, and what each of them shows.

use super::super::activity::ActivityRow;
use super::super::input::Key;
use super::super::page_data::{DiffData, PageData, PagePart, PageRequest, PageUpdate};
use std::sync::Arc;

/// A tab of a loop's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Tab {
    Activity,
    Checks,
    Diff,
    Prompt,
    Notes,
    Timeline,
    Plots,
}

impl Tab {
    pub(in super::super) const ALL: [Self; 7] = [
        Self::Activity,
        Self::Checks,
        Self::Diff,
        Self::Prompt,
        Self::Notes,
        Self::Timeline,
        Self::Plots,
    ];

    pub(in super::super) fn title(self) -> &'static str {
        match self {
            Self::Activity => "Activity",
            Self::Checks => "Checks",
            Self::Diff => "Diff",
            Self::Prompt => "Prompt",
            Self::Notes => "Notes",
            Self::Timeline => "Timeline",
            Self::Plots => "Plots",
        }
    }

    fn index(self) -> usize {
        Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0)
    }

    fn step(self, by: usize) -> Self {
        Self::ALL[(self.index() + by) % Self::ALL.len()]
    }
}

/// The space between two tabs.
pub(in super::super) const TAB_GAP: usize = 2;

/// Returns the tab at a column of the row of tabs.
pub(in super::super) fn tab_at(column: usize) -> Option<Tab> {
    let mut start = 1;
    Tab::ALL.into_iter().enumerate().find_map(|(at, tab)| {
        let end = start + tab_label(at, tab).len();
        let is_hit = (start..end).contains(&column);
        start = end + TAB_GAP;
        is_hit.then_some(tab)
    })
}

/// Returns the label of a tab: the key that opens it, and its title.
pub(in super::super) fn tab_label(at: usize, tab: Tab) -> String {
    format!("{} {}", at + 1, tab.title())
}

/// How far a text is scrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Scroll {
    /// The last row is visible, and stays visible when rows are added.
    End,
    /// This row is the first.
    Top(usize),
}

impl Scroll {
    /// Returns the first row to show of `total` in a window of `height` rows.
    pub(in super::super) fn first(self, total: usize, height: usize) -> usize {
        let last = total.saturating_sub(height);
        match self {
            Self::End => last,
            Self::Top(first) => first.min(last),
        }
    }
}

/// The page of one loop.
#[derive(Clone, Debug)]
pub(in super::super) struct LoopPage {
    pub(in super::super) name: String,
    pub(in super::super) tab: Tab,
    /// The selected iteration; `None` follows the newest.
    pub(in super::super) iteration: Option<u32>,
    pub(in super::super) check: usize,
    pub(in super::super) file: usize,
    pub(in super::super) scroll: Scroll,
    /// `None` until the loop was read.
    pub(in super::super) past: Option<Arc<PageData>>,
    pub(in super::super) activity: Option<(u32, Vec<ActivityRow>, u64)>,
    pub(in super::super) check_log: Option<Vec<String>>,
    pub(in super::super) diff: Option<DiffData>,
    pub(in super::super) prompt: Option<(u32, Vec<String>)>,
    pub(in super::super) error: Option<String>,
}

impl LoopPage {
    pub(in super::super) fn new(name: String) -> Self {
        Self {
            name,
            tab: Tab::Activity,
            iteration: None,
            check: 0,
            file: 0,
            scroll: Scroll::End,
            past: None,
            activity: None,
            check_log: None,
            diff: None,
            prompt: None,
            error: None,
        }
    }

    /// Returns what the reader must keep up to date.
    pub(in super::super) fn request(&self) -> PageRequest {
        PageRequest {
            name: self.name.clone(),
            iteration: self.iteration,
            check: self.check,
            part: match self.tab {
                Tab::Activity => PagePart::Activity,
                Tab::Checks => PagePart::CheckLog,
                Tab::Diff => PagePart::Diff,
                Tab::Prompt => PagePart::Prompt,
                Tab::Notes | Tab::Timeline | Tab::Plots => PagePart::Past,
            },
        }
    }

    pub(in super::super) fn update(&mut self, update: PageUpdate) {
        match update {
            PageUpdate::Past(past) => {
                self.check = self.check.min(past.checks.len().saturating_sub(1));
                self.past = Some(past);
                self.error = None;
            }
            PageUpdate::Activity {
                iteration,
                lines,
                dropped,
            } => self.activity = Some((iteration, lines, dropped)),
            PageUpdate::CheckLog(lines) => self.check_log = Some(lines),
            PageUpdate::Diff(diff) => {
                self.file = self.file.min(diff.files.len().saturating_sub(1));
                self.diff = Some(diff);
            }
            PageUpdate::Prompt { iteration, lines } => self.prompt = Some((iteration, lines)),
            PageUpdate::Unreadable(error) => self.error = Some(error),
        }
    }

    /// Returns the number of the iteration that is shown.
    pub(in super::super) fn shown_iteration(&self) -> u32 {
        let newest = self.past.as_ref().map_or(0, |past| past.newest());
        self.iteration.unwrap_or(newest)
    }

    pub(in super::super) fn open_tab(&mut self, tab: Tab) {
        if self.tab != tab {
            self.tab = tab;
            self.scroll = match tab {
                Tab::Activity | Tab::Timeline | Tab::Notes => Scroll::End,
                _ => Scroll::Top(0),
            };
            self.check_log = None;
        }
    }

    /// Handles a key. `height` is the number of rows of the page's content, and `total` the number
    /// of rows of its text. Returns whether the key means something here.
    pub(in super::super) fn press(&mut self, key: Key, total: usize, height: usize) -> bool {
        let is_checks = self.tab == Tab::Checks;
        match key {
            Key::Char(digit @ '1'..='7') => {
                let at = digit as usize - '1' as usize;
                self.open_tab(Tab::ALL[at]);
            }
            Key::Tab => self.open_tab(self.tab.step(1)),
            Key::BackTab => self.open_tab(self.tab.step(Tab::ALL.len() - 1)),
            Key::Left | Key::Char('[') => self.step_item(false),
            Key::Right | Key::Char(']') => self.step_item(true),
            Key::Up | Key::Char('k') if is_checks => {
                self.select_check(self.check.saturating_sub(1));
            }
            Key::Down | Key::Char('j') if is_checks => self.select_check(self.check + 1),
            Key::Up | Key::Char('k') => self.scroll_by(-1, total, height),
            Key::Down | Key::Char('j') => self.scroll_by(1, total, height),
            Key::PageUp => self.scroll_by(-page(height), total, height),
            Key::PageDown | Key::Char(' ') => self.scroll_by(page(height), total, height),
            Key::Home | Key::Char('g') => self.scroll = Scroll::Top(0),
            Key::End | Key::Char('G') => {
                self.scroll = Scroll::End;
                if self.tab == Tab::Activity {
                    self.iteration = None;
                }
            }
            _ => return false,
        }
        true
    }

    pub(in super::super) fn scroll_by(&mut self, by: isize, total: usize, height: usize) {
        let last = total.saturating_sub(height);
        let first = self.scroll.first(total, height);
        let next = first.saturating_add_signed(by).min(last);
        // At the end, new rows stay visible.
        self.scroll = if next == last && by > 0 && self.tab == Tab::Activity {
            Scroll::End
        } else {
            Scroll::Top(next)
        };
    }

    fn select_check(&mut self, check: usize) {
        let count = self.past.as_ref().map_or(0, |past| past.checks.len());
        let check = check.min(count.saturating_sub(1));
        if check != self.check {
            self.check = check;
            self.check_log = None;
            self.scroll = Scroll::Top(0);
        }
    }

    /// Selects the next or previous file of the diff, or else iteration.
    fn step_item(&mut self, forward: bool) {
        if self.tab == Tab::Diff {
            let count = self.diff.as_ref().map_or(0, |diff| diff.files.len());
            let next = if forward {
                self.file + 1
            } else {
                self.file.saturating_sub(1)
            };
            self.file = next.min(count.saturating_sub(1));
            self.scroll = Scroll::Top(0);
            return;
        }
        let Some(past) = &self.past else { return };
        let numbers = past.iterations.iter().map(|one| one.number);
        let shown = self.shown_iteration();
        let next = if forward {
            numbers.filter(|number| *number > shown).min()
        } else {
            numbers.filter(|number| *number < shown).max()
        };
        if let Some(next) = next {
            self.iteration = (next != past.newest()).then_some(next);
            self.check_log = None;
            self.scroll = match self.tab {
                Tab::Activity => Scroll::End,
                _ => Scroll::Top(0),
            };
        }
    }
}

fn page(height: usize) -> isize {
    height.saturating_sub(2).max(1) as isize
}
