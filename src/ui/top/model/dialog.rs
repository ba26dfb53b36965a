//! Dialogs: a question before a loop is stopped, a line of text to type, and the help.

use super::super::input::Key;
use crate::ui::one_line;

/// What a typed line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum LinePurpose {
    Say,
    Answer,
    Limits,
    Search,
}

/// A command that the keys run: `ralph` with these arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct SteerCommand {
    pub(in super::super) args: Vec<String>,
    /// Whether it needs the terminal.
    pub(in super::super) takes_terminal: bool,
}

impl SteerCommand {
    pub(in super::super) fn new(args: &[&str]) -> Self {
        Self {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            takes_terminal: false,
        }
    }
}

/// A dialog that takes all keys until it is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Dialog {
    Help,
    /// Runs the command if the user agrees.
    Confirm {
        question: String,
        command: SteerCommand,
    },
    Line {
        purpose: LinePurpose,
        /// The loop; empty for a search.
        name: String,
        /// A text above the line, such as the agent's question.
        about: String,
        /// Whether resuming the loop needs the terminal.
        needs_terminal: bool,
        line: LineEditor,
    },
}

/// What a key did to a dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum DialogResult {
    Open,
    Cancelled,
    Run(SteerCommand),
    Search(String),
}

impl Dialog {
    pub(in super::super) fn press(&mut self, key: Key) -> DialogResult {
        match (self, key) {
            (Self::Confirm { command, .. }, Key::Char('y' | 'Y')) => {
                DialogResult::Run(command.clone())
            }
            (Self::Help | Self::Confirm { .. }, _) | (_, Key::Escape | Key::Ctrl('c' | 'g')) => {
                DialogResult::Cancelled
            }
            (
                Self::Line {
                    purpose,
                    name,
                    needs_terminal,
                    line,
                    ..
                },
                Key::Enter,
            ) => accept(*purpose, name, *needs_terminal, line.text.trim()),
            (Self::Line { line, .. }, key) => {
                line.press(key);
                DialogResult::Open
            }
        }
    }
}

/// Returns the command for a typed line.
fn accept(purpose: LinePurpose, name: &str, needs_terminal: bool, text: &str) -> DialogResult {
    let mut command = match purpose {
        LinePurpose::Search => return DialogResult::Search(text.to_owned()),
        _ if text.is_empty() => return DialogResult::Cancelled,
        LinePurpose::Say => SteerCommand::new(&["say", name, "--", text]),
        LinePurpose::Answer => SteerCommand::new(&["resume", name, &format!("--answer={text}")]),
        LinePurpose::Limits => {
            let mut command = SteerCommand::new(&["set", name, "--"]);
            command
                .args
                .extend(text.split_whitespace().map(str::to_owned));
            command
        }
    };
    command.takes_terminal = purpose == LinePurpose::Answer && needs_terminal;
    DialogResult::Run(command)
}

/// A line of text that the user types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct LineEditor {
    pub(in super::super) text: String,
    /// The byte offset of the cursor, between two characters.
    pub(in super::super) cursor: usize,
}

/// The longest line that can be typed, in bytes.
const LINE_MAX: usize = 16 << 10;

impl LineEditor {
    pub(in super::super) fn new(text: String) -> Self {
        let cursor = text.len();
        Self { text, cursor }
    }

    pub(in super::super) fn insert(&mut self, text: &str) {
        if self.text.len() + text.len() <= LINE_MAX {
            self.text.insert_str(self.cursor, text);
            self.cursor += text.len();
        }
    }

    /// Inserts pasted text, on one line.
    pub(in super::super) fn paste(&mut self, text: &str) {
        self.insert(&one_line(text));
    }

    fn press(&mut self, key: Key) {
        let before = &self.text[..self.cursor];
        let previous = before.char_indices().next_back().map_or(0, |(at, _)| at);
        let after = self.text[self.cursor..].chars().next();
        let next = self.cursor + after.map_or(0, char::len_utf8);
        match key {
            Key::Char(c) if !c.is_control() => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Backspace => self.remove(previous, self.cursor),
            Key::Delete | Key::Ctrl('d') => self.remove(self.cursor, next),
            Key::Ctrl('u') => self.remove(0, self.cursor),
            Key::Ctrl('k') => self.remove(self.cursor, self.text.len()),
            Key::Ctrl('w') => {
                let word = before.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.remove(word, self.cursor);
            }
            Key::Left | Key::Ctrl('b') => self.cursor = previous,
            Key::Right | Key::Ctrl('f') => self.cursor = next,
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.text.len(),
            _ => {}
        }
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }
}
