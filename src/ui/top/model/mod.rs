//! The state of `ralph top` as a pure model: events go in, effects come out.

mod dialog;
mod list;
mod page;
mod steer;
#[cfg(test)]
mod tests;

pub(super) use dialog::{Dialog, LineEditor, LinePurpose, SteerCommand};
pub(super) use list::{ListRow, StateFilter};
pub(super) use page::{LoopPage, TAB_GAP, Tab, tab_label};

use super::draw;
use super::input::{Key, UserInput};
use super::page_data::PageUpdate;
use super::reader::Interest;
use super::summary::LoopSummary;
use dialog::DialogResult;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) enum TopEvent {
    Input(UserInput),
    /// The terminal has this many columns and rows.
    Resized(u16, u16),
    /// The time, in milliseconds since 1970.
    Clock(i64),
    Loops(Vec<Arc<LoopSummary>>),
    /// Something new about the loop with this name.
    Page(String, PageUpdate),
    /// A command ended, and printed this.
    CommandEnded {
        args: Vec<String>,
        output: String,
        success: bool,
    },
}

/// Something to do outside the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TopEffect {
    Quit,
    /// Stops this process, as Ctrl-Z does.
    Suspend,
    Run(SteerCommand),
    /// Opens the report of the loop with this name.
    OpenReport(String),
    /// Draws everything again.
    Redraw,
}

/// A message at the bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BottomMessage {
    pub(super) text: String,
    pub(super) is_error: bool,
    /// The time at which it disappears, in milliseconds since 1970.
    until_ms: i64,
}

/// How long a message is shown, in milliseconds.
const MESSAGE_MS: i64 = 8000;

/// Everything that `ralph top` shows.
pub(super) struct TopModel {
    /// `None` until the loops were read.
    pub(super) loops: Option<Vec<Arc<LoopSummary>>>,
    pub(super) rows: Vec<ListRow>,
    /// The index of the selected row.
    pub(super) selected: usize,
    /// The index of the first row on the screen.
    pub(super) first: usize,
    pub(super) filter: StateFilter,
    pub(super) search: String,
    folded: BTreeSet<String>,
    /// Whether archived loops are listed, too.
    pub(super) archived: bool,
    pub(super) page: Option<LoopPage>,
    pub(super) dialog: Option<Dialog>,
    pub(super) message: Option<BottomMessage>,
    pub(super) size: (u16, u16),
    pub(super) now_ms: i64,
    /// The time zone in which times are shown.
    pub(super) zone: TimeZone,
    generation: u64,
}

impl TopModel {
    pub(super) fn new(size: (u16, u16), now_ms: i64) -> Self {
        Self {
            loops: None,
            rows: Vec::new(),
            selected: 0,
            first: 0,
            filter: StateFilter::All,
            search: String::new(),
            folded: BTreeSet::new(),
            archived: false,
            page: None,
            dialog: None,
            message: None,
            size,
            now_ms,
            zone: TimeZone::system(),
            generation: 0,
        }
    }

    /// Opens the page of a loop that the user named on the command line. `is_archived` says where it
    /// is.
    pub(super) fn open(&mut self, name: &str, is_archived: bool) {
        self.page = Some(LoopPage::new(name.to_owned()));
        self.archived = is_archived;
    }

    pub(super) fn update(&mut self, event: TopEvent) -> Option<TopEffect> {
        let effect = match event {
            TopEvent::Input(input) => self.input(input),
            TopEvent::Resized(columns, rows) => {
                self.size = (columns, rows);
                None
            }
            TopEvent::Clock(now_ms) => {
                self.now_ms = now_ms;
                let is_old = |message: &BottomMessage| message.until_ms <= now_ms;
                if self.message.as_ref().is_some_and(is_old) {
                    self.message = None;
                }
                None
            }
            TopEvent::Loops(loops) => {
                self.loops = Some(loops);
                self.list_again();
                None
            }
            TopEvent::Page(name, update) => {
                if let Some(page) = self.page.as_mut().filter(|page| page.name == name) {
                    page.update(update);
                }
                None
            }
            TopEvent::CommandEnded {
                args,
                output,
                success,
            } => {
                self.generation += 1;
                let mut lines = output.lines().filter(|line| !line.trim().is_empty());
                // Lines of the console say less than the command's own message.
                let is_own = |line: &&str| !line.starts_with("[ralph] ");
                let line = lines.clone().find(is_own).or_else(|| lines.next());
                let text = match line {
                    Some(line) => line.to_owned(),
                    None if success => format!("ralph {}: done", args.join(" ")),
                    None => format!("ralph {} failed", args.join(" ")),
                };
                self.show(&text, !success);
                None
            }
        };
        self.keep_selection_visible();
        effect
    }

    /// Returns what the reader must keep up to date.
    pub(super) fn interest(&self) -> Interest {
        let height = draw::list_height(self);
        let on_screen = self.rows.iter().skip(self.first).take(height);
        let shown = on_screen.filter_map(|row| match row {
            ListRow::Loop { summary, .. } => Some(summary.name.clone()),
            ListRow::Repository { .. } => None,
        });
        let page = self.page.as_ref();
        Interest {
            shown: match page {
                Some(page) => [page.name.clone()].into(),
                None => shown.collect(),
            },
            page: page.map(LoopPage::request),
            archived: self.archived,
            generation: self.generation,
        }
    }

    /// Returns the selected loop, or the one whose page is open.
    pub(super) fn current(&self) -> Option<&Arc<LoopSummary>> {
        if let Some(page) = &self.page {
            let mut loops = self.loops.iter().flatten();
            return loops.find(|one| one.name == page.name);
        }
        match self.rows.get(self.selected)? {
            ListRow::Loop { summary, .. } => Some(summary),
            ListRow::Repository { .. } => None,
        }
    }

    fn show(&mut self, text: &str, is_error: bool) {
        self.message = Some(BottomMessage {
            text: crate::ui::one_line(text),
            is_error,
            until_ms: self.now_ms + MESSAGE_MS,
        });
    }

    /// Makes the rows again, and keeps the selection on the same loop.
    fn list_again(&mut self) {
        let key = self.rows.get(self.selected).map(ListRow::key);
        let loops = self.loops.as_deref().unwrap_or_default();
        self.rows = list::rows(loops, self.filter, &self.search, &self.folded);
        let same = key.and_then(|key| self.rows.iter().position(|row| row.key() == key));
        self.selected = same.unwrap_or_else(|| {
            let is_loop = |row: &ListRow| matches!(row, ListRow::Loop { .. });
            let near = self.selected.min(self.rows.len().saturating_sub(1));
            let near_loop = self.rows.get(near).filter(|row| is_loop(row)).map(|_| near);
            near_loop
                .or_else(|| self.rows.iter().position(is_loop))
                .unwrap_or(0)
        });
    }

    fn keep_selection_visible(&mut self) {
        let height = draw::list_height(self).max(1);
        let last_first = self.rows.len().saturating_sub(height);
        self.first = self
            .first
            .min(self.selected)
            .max((self.selected + 1).saturating_sub(height))
            .min(last_first);
        // Show the repository above its first loop.
        if self.first == 1 && self.selected < height {
            self.first = 0;
        }
    }

    fn input(&mut self, input: UserInput) -> Option<TopEffect> {
        match input {
            UserInput::Key(Key::Ctrl('z')) => Some(TopEffect::Suspend),
            UserInput::Key(Key::Ctrl('l')) => Some(TopEffect::Redraw),
            UserInput::Paste(text) => {
                if let Some(Dialog::Line { line, .. }) = &mut self.dialog {
                    line.paste(&text);
                    self.search_while_typing();
                }
                None
            }
            UserInput::Key(key) if self.dialog.is_some() => self.press_in_dialog(key),
            UserInput::Click(..) | UserInput::Wheel(_) if self.dialog.is_some() => None,
            UserInput::Key(Key::Ctrl('c')) => Some(TopEffect::Quit),
            UserInput::Key(key) if self.page.is_some() => self.press_on_page(key),
            UserInput::Key(key) => self.press_in_list(key),
            UserInput::Click(column, row) => {
                self.click(column, row);
                None
            }
            UserInput::Wheel(up) => {
                let by = if up { -3 } else { 3 };
                if self.page.is_some() {
                    self.scroll_page(by);
                } else {
                    self.move_selection(by);
                }
                None
            }
        }
    }

    fn press_in_dialog(&mut self, key: Key) -> Option<TopEffect> {
        let dialog = self.dialog.as_mut()?;
        let is_search = matches!(
            dialog,
            Dialog::Line {
                purpose: LinePurpose::Search,
                ..
            }
        );
        match dialog.press(key) {
            DialogResult::Open => self.search_while_typing(),
            DialogResult::Cancelled => {
                self.dialog = None;
                if is_search {
                    self.search.clear();
                    self.list_again();
                }
            }
            DialogResult::Search(text) => {
                self.dialog = None;
                self.search = text;
                self.list_again();
            }
            DialogResult::Run(command) => {
                self.dialog = None;
                return Some(self.run(command));
            }
        }
        None
    }

    /// Applies a search with every key.
    fn search_while_typing(&mut self) {
        let Some(Dialog::Line { purpose, line, .. }) = &self.dialog else {
            return;
        };
        if *purpose == LinePurpose::Search {
            self.search.clone_from(&line.text);
            self.list_again();
        }
    }

    fn run(&mut self, command: SteerCommand) -> TopEffect {
        let words: Vec<_> = command.args.iter().take(2).map(String::as_str).collect();
        self.show(&format!("ralph {} …", words.join(" ")), false);
        TopEffect::Run(command)
    }

    fn press_in_list(&mut self, key: Key) -> Option<TopEffect> {
        let height = draw::list_height(self) as isize;
        match key {
            Key::Char('q') => return Some(TopEffect::Quit),
            Key::Escape if !self.search.is_empty() => {
                self.search.clear();
                self.list_again();
            }
            Key::Up | Key::Char('k') => self.move_selection(-1),
            Key::Down | Key::Char('j') => self.move_selection(1),
            Key::PageUp => self.move_selection(-height),
            Key::PageDown => self.move_selection(height),
            Key::Home | Key::Char('g') => self.move_selection(isize::MIN),
            Key::End | Key::Char('G') => self.move_selection(isize::MAX),
            Key::Enter => self.open_selected(),
            Key::Char(' ') => self.fold(None),
            Key::Left => self.fold(Some(true)),
            Key::Right => self.fold(Some(false)),
            Key::Char('f') => {
                self.filter = self.filter.next();
                self.list_again();
            }
            Key::Char('A') => {
                self.archived = !self.archived;
                self.generation += 1;
            }
            key => return self.press_anywhere(key),
        }
        None
    }

    fn press_on_page(&mut self, key: Key) -> Option<TopEffect> {
        if matches!(key, Key::Char('q') | Key::Escape | Key::Backspace) {
            let name = self.page.take().map(|page| page.name);
            let at = self.rows.iter().position(|row| Some(row.key()) == name);
            self.selected = at.unwrap_or(self.selected);
            return None;
        }
        let (total, height) = draw::page_rows(self);
        let page = self.page.as_mut()?;
        if page.press(key, total, height) {
            return None;
        }
        self.press_anywhere(key)
    }

    /// Handles the keys that mean the same in the list and on a page.
    fn press_anywhere(&mut self, key: Key) -> Option<TopEffect> {
        match key {
            Key::Char('?' | 'h') => self.dialog = Some(Dialog::Help),
            Key::Char('/') => {
                self.page = None;
                self.dialog = Some(Dialog::Line {
                    purpose: LinePurpose::Search,
                    name: String::new(),
                    about: String::new(),
                    needs_terminal: false,
                    line: LineEditor::new(self.search.clone()),
                });
            }
            Key::Char(c @ ('p' | 'r' | 'x' | 's' | 'a' | 'l' | 't' | 'o')) => {
                let Some(one) = self.current().cloned() else {
                    self.show("select a loop first", true);
                    return None;
                };
                return self.steer(c, &one);
            }
            _ => {}
        }
        None
    }

    fn move_selection(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    fn scroll_page(&mut self, by: isize) {
        let (total, height) = draw::page_rows(self);
        if let Some(page) = &mut self.page {
            page.scroll_by(by, total, height);
        }
    }

    /// Opens the selected loop, or folds the selected repository.
    fn open_selected(&mut self) {
        match self.rows.get(self.selected) {
            Some(ListRow::Loop { summary, .. }) => {
                self.page = Some(LoopPage::new(summary.name.clone()));
            }
            Some(ListRow::Repository { .. }) => self.fold(None),
            None => {}
        }
    }

    /// Folds or unfolds the selected row; `None` for the other of the two.
    fn fold(&mut self, fold: Option<bool>) {
        let Some(row) = self.rows.get(self.selected) else {
            return;
        };
        let key = row.key();
        if fold.unwrap_or(!self.folded.contains(&key)) {
            self.folded.insert(key);
        } else {
            self.folded.remove(&key);
        }
        self.list_again();
    }

    fn click(&mut self, column: u16, row: u16) {
        if let Some(page) = &mut self.page {
            if let Some(tab) = page::tab_at(usize::from(column)).filter(|_| row == draw::TABS_ROW) {
                page.open_tab(tab);
            }
            return;
        }
        let Some(at) = draw::list_row_at(self, row) else {
            return;
        };
        if self.selected == at {
            self.open_selected();
        } else {
            self.selected = at;
        }
    }
}
