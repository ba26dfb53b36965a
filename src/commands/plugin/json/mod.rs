//! Edits one value in a JSON text and leaves everything else unchanged: order, whitespace and line
//! endings.
//!
//! `jsonc_parser` locates the values, and edits replace ranges of the text. The parser's own
//! editing API is not used, because adding a member reformats its neighbors, and removing the
//! member does not undo that.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, from_str};
use std::ops::Range;

/// One part of the path from the root of a document to a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PathPart {
    /// The member of an object with this key.
    Key(String),
    /// The item of an array that equals this value.
    Item(Value),
}

/// The data for undoing one change. It is stored as JSON, so the field names must not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JsonUndo {
    pub(crate) path: Vec<PathPart>,
    pub(crate) wrote: Value,
    /// The number of parts of the path that existed before the change.
    #[serde(rename = "kept")]
    existing: usize,
    /// The original text at the last existing part, if the change replaced it or filled an empty
    /// container. `None` otherwise.
    before: Option<String>,
}

/// The text of one JSON object.
#[derive(Clone, Debug)]
pub(crate) struct JsonDocument {
    text: String,
}

/// The byte range of an object member or an array item.
struct JsonMember {
    start: usize,
    key: Option<String>,
    value: Range<usize>,
}

impl JsonDocument {
    /// Parses the text, which must be an object.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        // `jsonc_parser` also accepts syntax that clients reject, such as comments.
        match from_str::<Value>(text) {
            Ok(Value::Object(_)) => {}
            Ok(_) => return Err("not an object".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
            .map_err(|error| error.to_string())?;
        Ok(Self {
            text: text.to_owned(),
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members(&[]).is_empty()
    }

    pub(crate) fn get(&self, path: &[PathPart]) -> Option<Value> {
        from_str(&self.text[self.find(path)?]).ok()
    }

    /// Sets the value at `path`. Returns the data for undoing the change, or `None` if nothing
    /// changed. Fails if a part of the path is not a container of the right kind.
    pub(crate) fn set(
        &mut self,
        path: &[PathPart],
        value: &Value,
    ) -> Result<Option<JsonUndo>, String> {
        let existing = (0..=path.len())
            .rev()
            .find(|length| self.find(&path[..*length]).is_some())
            .unwrap_or(0);
        let Some(range) = self.find(&path[..existing]) else {
            return Ok(None);
        };
        let undo = |before| JsonUndo {
            path: path.to_vec(),
            wrote: value.clone(),
            existing,
            before,
        };
        let Some((part, rest)) = path[existing..].split_first() else {
            let old = self.text[range.clone()].to_owned();
            if from_str::<Value>(&old).is_ok_and(|old| old == *value) {
                return Ok(None);
            }
            let indent = self.indent_at(range.start).to_owned();
            let new = if old.contains('\n') {
                self.pretty(value, &indent)
            } else {
                value.to_string()
            };
            self.text.replace_range(range, &new);
            return Ok(Some(undo(Some(old))));
        };
        let opening = match part {
            PathPart::Key(_) => "{",
            PathPart::Item(_) => "[",
        };
        if !self.text[range.start..].starts_with(opening) {
            let kind = if opening == "{" { "object" } else { "array" };
            return Err(format!(
                "{} is not an {kind}",
                display_path(&path[..existing])
            ));
        }
        let empty = self
            .members(&path[..existing])
            .is_empty()
            .then(|| self.text[range.clone()].to_owned());
        let nested = rest
            .iter()
            .rev()
            .fold(value.clone(), |inner, part| match part {
                PathPart::Key(key) => Value::Object([(key.clone(), inner)].into_iter().collect()),
                PathPart::Item(_) => Value::Array(vec![inner]),
            });
        self.insert(&path[..existing], range, part, &nested);
        Ok(Some(undo(empty)))
    }

    /// Undoes a change. Returns false if the changed value no longer exists.
    pub(crate) fn undo(&mut self, undo: &JsonUndo) -> bool {
        let Some(range) = self.find(&undo.path) else {
            return false;
        };
        if undo.existing == undo.path.len() {
            if let Some(before) = &undo.before {
                self.text.replace_range(range, before);
            }
            return true;
        }
        self.remove(&undo.path);
        for length in (undo.existing + 1..undo.path.len()).rev() {
            if self.is_empty_at(&undo.path[..length]) {
                self.remove(&undo.path[..length]);
            }
        }
        let container = &undo.path[..undo.existing];
        if let (Some(before), true) = (&undo.before, self.is_empty_at(container))
            && let Some(range) = self.find(container)
        {
            self.text.replace_range(range, before);
        }
        true
    }

    /// Returns how many members the object or array at `path` has.
    pub(crate) fn count(&self, path: &[PathPart]) -> usize {
        self.members(path).len()
    }

    fn is_empty_at(&self, path: &[PathPart]) -> bool {
        self.find(path).is_some() && self.count(path) == 0
    }

    /// Appends a member, formatted like the one before it.
    fn insert(
        &mut self,
        path: &[PathPart],
        container: Range<usize>,
        part: &PathPart,
        value: &Value,
    ) {
        let members = self.members(path);
        let Some(last) = members.last() else {
            let indent = self.indent_at(container.start).to_owned();
            let (opening, closing) = (
                &self.text[container.start..=container.start],
                &self.text[container.end - 1..container.end],
            );
            let new = if self.is_multiline() {
                let (line, deeper) = (
                    self.line_ending(),
                    format!("{indent}{}", self.indent_unit()),
                );
                let member = format!("{}{}", key_of(part, ": "), self.pretty(value, &deeper));
                format!("{opening}{line}{deeper}{member}{line}{indent}{closing}")
            } else {
                format!("{opening}{}{value}{closing}", key_of(part, ": "))
            };
            self.text.replace_range(container, &new);
            return;
        };
        let before = &self.text[..last.start];
        let gap = &before[before.trim_end_matches(is_space).len()..];
        let head = &self.text[last.start..last.value.start];
        let colon = head.rfind('"').map_or(": ", |quote| &head[quote + 1..]);
        let new = match gap.rfind('\n') {
            Some(at) => {
                let indent = &gap[at + 1..];
                format!(
                    ",{}{indent}{}{}",
                    self.line_ending(),
                    key_of(part, colon),
                    self.pretty(value, indent)
                )
            }
            None if gap.is_empty() && colon == ":" => format!(",{}{value}", key_of(part, colon)),
            None => format!(", {}{value}", key_of(part, colon)),
        };
        let at = last.value.end;
        self.text.insert_str(at, &new);
    }

    /// Removes a member together with the separator before it or, if it is the first, after it.
    /// Returns false if the member does not exist.
    pub(crate) fn remove(&mut self, path: &[PathPart]) -> bool {
        let Some((part, container)) = path.split_last() else {
            return false;
        };
        let members = self.members(container);
        let (Some(container), Some(index)) = (self.find(container), self.index(&members, part))
        else {
            return false;
        };
        let removed = match (
            index.checked_sub(1).map(|previous| &members[previous]),
            members.get(index + 1),
        ) {
            (Some(previous), _) => previous.value.end..members[index].value.end,
            (None, Some(next)) => members[index].start..next.start,
            (None, None) => container.start + 1..container.end - 1,
        };
        self.text.replace_range(removed, "");
        true
    }

    /// Returns the byte range of the value at `path`. `None` if there is none.
    fn find(&self, path: &[PathPart]) -> Option<Range<usize>> {
        self.with_node(path, |node| span(node))
    }

    /// Returns the members of the object or array at `path`. Empty if the value is neither.
    fn members(&self, path: &[PathPart]) -> Vec<JsonMember> {
        self.with_node(path, members).unwrap_or_default()
    }

    /// Calls `read` with the syntax node at `path` and returns the result. `None` if there is no
    /// node.
    fn with_node<T>(
        &self,
        path: &[PathPart],
        read: impl FnOnce(&ast::Value<'_>) -> T,
    ) -> Option<T> {
        let parsed = parse_to_ast(
            &self.text,
            &CollectOptions::default(),
            &ParseOptions::default(),
        );
        let root = parsed.ok()?.value?;
        let node = path.iter().try_fold(&root, |node, part| {
            let index = self.index(&members(node), part)?;
            match node {
                ast::Value::Object(object) => Some(&object.properties[index].value),
                ast::Value::Array(array) => Some(&array.elements[index]),
                _ => None,
            }
        })?;
        Some(read(node))
    }

    /// Returns the index of a member. If several members have the same key, returns the last one.
    fn index(&self, members: &[JsonMember], part: &PathPart) -> Option<usize> {
        members.iter().rposition(|member| match part {
            PathPart::Key(key) => member.key.as_ref() == Some(key),
            PathPart::Item(item) => {
                member.key.is_none()
                    && from_str::<Value>(&self.text[member.value.clone()])
                        .is_ok_and(|value| value == *item)
            }
        })
    }

    /// Returns whether the document spans several lines. An empty object counts as spanning
    /// several.
    fn is_multiline(&self) -> bool {
        match (self.find(&[]), self.members(&[]).first()) {
            (Some(root), Some(first)) => self.text[root.start..first.start].contains('\n'),
            _ => true,
        }
    }

    /// Returns the indentation of one level. Two spaces if the document has none.
    fn indent_unit(&self) -> &str {
        let gap = match (self.find(&[]), self.members(&[]).first()) {
            (Some(root), Some(first)) => &self.text[root.start + 1..first.start],
            _ => "",
        };
        gap.rfind('\n').map_or("  ", |at| &gap[at + 1..])
    }

    fn line_ending(&self) -> &'static str {
        if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// Returns the indentation of the line at this byte offset.
    fn indent_at(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let rest = &self.text[line..at];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    fn pretty(&self, value: &Value, indent: &str) -> String {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.indent_unit().as_bytes());
        let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
        let text = written
            .ok()
            .and_then(|()| String::from_utf8(bytes).ok())
            .unwrap_or_else(|| value.to_string());
        text.replace('\n', &format!("{}{indent}", self.line_ending()))
    }
}

fn span(node: &impl Ranged) -> Range<usize> {
    let range = node.range();
    range.start..range.end
}

fn members(node: &ast::Value<'_>) -> Vec<JsonMember> {
    match node {
        ast::Value::Object(object) => object
            .properties
            .iter()
            .map(|property| JsonMember {
                start: property.range().start,
                key: Some(property.name.as_str().to_owned()),
                value: span(&property.value),
            })
            .collect(),
        ast::Value::Array(array) => array
            .elements
            .iter()
            .map(|element| JsonMember {
                start: element.range().start,
                key: None,
                value: span(element),
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn key_of(part: &PathPart, colon: &str) -> String {
    match part {
        PathPart::Key(key) => format!("{}{colon}", Value::from(key.as_str())),
        PathPart::Item(_) => String::new(),
    }
}

/// Formats the path for people, such as `hooks.Stop.[]`.
pub(crate) fn display_path(path: &[PathPart]) -> String {
    let keys = path.iter().map(|part| match part {
        PathPart::Key(key) => key.as_str(),
        PathPart::Item(_) => "[]",
    });
    keys.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
