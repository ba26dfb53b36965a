//! What the keys that steer a loop do: each runs the command that a person would type.

use super::super::summary::LoopSummary;
use super::{Dialog, LineEditor, LinePurpose, SteerCommand, TopEffect, TopModel};
use crate::engine::Status;

impl TopModel {
    /// Starts what a key does to a loop.
    pub(super) fn steer(&mut self, key: char, one: &LoopSummary) -> Option<TopEffect> {
        let name = &one.name[..];
        if one.is_archived && key != 'o' {
            self.show(
                &format!("{name} is archived: a newer loop has its name"),
                true,
            );
            return None;
        }
        let details = one.details.as_ref();
        let needs_terminal = details.is_some_and(|details| details.needs_terminal);
        let line = |purpose, about: String, text: String| {
            Some(Dialog::Line {
                purpose,
                name: name.to_owned(),
                about,
                needs_terminal,
                line: LineEditor::new(text),
            })
        };
        let command = match key {
            'p' => SteerCommand::new(&["pause", name]),
            'r' => SteerCommand {
                takes_terminal: needs_terminal,
                ..SteerCommand::new(&["resume", name])
            },
            't' => SteerCommand {
                takes_terminal: true,
                ..SteerCommand::new(&["attach", name])
            },
            'o' => {
                self.show(&format!("ralph report {name} …"), false);
                return Some(TopEffect::OpenReport(name.to_owned()));
            }
            'x' => {
                let what = if one.is_running() {
                    "Its agent and everything it started are killed."
                } else {
                    "It ends as stopped."
                };
                self.dialog = Some(Dialog::Confirm {
                    question: format!("Stop {name}? {what}"),
                    command: SteerCommand::new(&["stop", name]),
                });
                return None;
            }
            's' => {
                self.dialog = line(LinePurpose::Say, String::new(), String::new());
                return None;
            }
            'a' => {
                let question = details.and_then(|details| details.question.clone());
                self.dialog = line(
                    LinePurpose::Answer,
                    question.unwrap_or_default(),
                    String::new(),
                );
                return None;
            }
            _ => {
                let limits = details.map(|details| details.limits.clone());
                self.dialog = line(
                    LinePurpose::Limits,
                    "For example: max-iterations=20 max-cost=5 max-time=2h".into(),
                    limits.unwrap_or_default(),
                );
                return None;
            }
        };
        if key == 'r' && one.status == Status::Done {
            self.show(&format!("{name} is done: there is nothing to resume"), true);
            return None;
        }
        Some(self.run(command))
    }
}
