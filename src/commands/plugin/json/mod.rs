//! A JSON text that is changed at one place, and stays as it is everywhere else: order, spaces and line ends.

use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, from_str};
use std::ops::Range;

/// One step from a value into it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// A key of an object.
    Key(String),
    /// The item of an array that is like this.
    Item(Value),
}

/// What takes one change back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Undo {
    pub(crate) path: Vec<Part>,
    pub(crate) wrote: Value,
    /// How many parts of the path were there before.
    kept: usize,
    /// How the last of those was written, if it was replaced or is a container that was empty.
    before: Option<String>,
}

/// A text that holds one object.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    text: String,
}

/// Where a member of an object, or an item of an array, stands.
struct Member {
    start: usize,
    key: Option<String>,
    value: Range<usize>,
}

impl Json {
    /// The text of an object; the error says what is wrong with any other.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        match from_str::<Value>(text) {
            Ok(Value::Object(_)) => Ok(Self {
                text: text.to_owned(),
            }),
            Ok(_) => Err("it holds no object".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members(self.root().start).is_empty()
    }

    /// What stands there.
    pub(crate) fn get(&self, path: &[Part]) -> Option<Value> {
        from_str(&self.text[self.find(path)?]).ok()
    }

    /// Makes this stand there. None: it did already. An error names the part that has no room for it.
    pub(crate) fn set(&mut self, path: &[Part], value: &Value) -> Result<Option<Undo>, String> {
        let kept = (0..=path.len())
            .rev()
            .find(|kept| self.find(&path[..*kept]).is_some())
            .unwrap_or(0);
        let Some(place) = self.find(&path[..kept]) else {
            return Ok(None);
        };
        let undo = |before| Undo {
            path: path.to_vec(),
            wrote: value.clone(),
            kept,
            before,
        };
        let Some((part, rest)) = path[kept..].split_first() else {
            let old = self.text[place.clone()].to_owned();
            if from_str::<Value>(&old).is_ok_and(|old| old == *value) {
                return Ok(None);
            }
            let indent = self.indent_at(place.start).to_owned();
            let new = if old.contains('\n') {
                self.pretty(value, &indent)
            } else {
                value.to_string()
            };
            self.text.replace_range(place, &new);
            return Ok(Some(undo(Some(old))));
        };
        let opening = match part {
            Part::Key(_) => "{",
            Part::Item(_) => "[",
        };
        if !self.text[place.start..].starts_with(opening) {
            let kind = if opening == "{" { "object" } else { "array" };
            return Err(format!("{} is no {kind}", shown(&path[..kept])));
        }
        let empty = self
            .members(place.start)
            .is_empty()
            .then(|| self.text[place.clone()].to_owned());
        let nested = rest
            .iter()
            .rev()
            .fold(value.clone(), |inner, part| match part {
                Part::Key(key) => Value::Object([(key.clone(), inner)].into_iter().collect()),
                Part::Item(_) => Value::Array(vec![inner]),
            });
        self.insert(place, part, &nested);
        Ok(Some(undo(empty)))
    }

    /// Takes a change back. False: it is not there any more.
    pub(crate) fn undo(&mut self, undo: &Undo) -> bool {
        let Some(place) = self.find(&undo.path) else {
            return false;
        };
        if undo.kept == undo.path.len() {
            if let Some(before) = &undo.before {
                self.text.replace_range(place, before);
            }
            return true;
        }
        self.remove(&undo.path);
        for length in (undo.kept + 1..undo.path.len()).rev() {
            if self.is_empty_at(&undo.path[..length]) {
                self.remove(&undo.path[..length]);
            }
        }
        let container = &undo.path[..undo.kept];
        if let (Some(before), true) = (&undo.before, self.is_empty_at(container))
            && let Some(place) = self.find(container)
        {
            self.text.replace_range(place, before);
        }
        true
    }

    /// How much the object or array that stands there holds.
    pub(crate) fn count(&self, path: &[Part]) -> usize {
        self.find(path)
            .map_or(0, |place| self.members(place.start).len())
    }

    fn is_empty_at(&self, path: &[Part]) -> bool {
        self.find(path).is_some() && self.count(path) == 0
    }

    /// Puts a member behind the last one, written as that one is.
    fn insert(&mut self, container: Range<usize>, part: &Part, value: &Value) {
        let members = self.members(container.start);
        let Some(last) = members.last() else {
            let indent = self.indent_at(container.start).to_owned();
            let (opening, closing) = (
                &self.text[container.start..=container.start],
                &self.text[container.end - 1..container.end],
            );
            let new = if self.is_spread() {
                let (line, deeper) = (self.line_end(), format!("{indent}{}", self.unit()));
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
                    self.line_end(),
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

    /// Takes a member out, with what divides it from the one before it, or from the next if it is the first. False:
    /// there is none.
    pub(crate) fn remove(&mut self, path: &[Part]) -> bool {
        let Some((part, container)) = path.split_last() else {
            return false;
        };
        let Some(container) = self.find(container) else {
            return false;
        };
        let members = self.members(container.start);
        let Some(at) = self.index(&members, part) else {
            return false;
        };
        let gone = match (
            at.checked_sub(1).map(|at| &members[at]),
            members.get(at + 1),
        ) {
            (Some(previous), _) => previous.value.end..members[at].value.end,
            (None, Some(next)) => members[at].start..next.start,
            (None, None) => container.start + 1..container.end - 1,
        };
        self.text.replace_range(gone, "");
        true
    }

    fn find(&self, path: &[Part]) -> Option<Range<usize>> {
        path.iter().try_fold(self.root(), |place, part| {
            let mut members = self.members(place.start);
            let at = self.index(&members, part)?;
            Some(members.swap_remove(at).value)
        })
    }

    /// Of several members with one key, the last counts.
    fn index(&self, members: &[Member], part: &Part) -> Option<usize> {
        members.iter().rposition(|member| match part {
            Part::Key(key) => member.key.as_ref() == Some(key),
            Part::Item(item) => {
                member.key.is_none()
                    && from_str::<Value>(&self.text[member.value.clone()])
                        .is_ok_and(|value| value == *item)
            }
        })
    }

    fn root(&self) -> Range<usize> {
        let start = self.skip_space(0);
        start..self.skip_value(start)
    }

    /// What the object or array that begins there holds; nothing, if it is neither.
    fn members(&self, start: usize) -> Vec<Member> {
        let bytes = self.text.as_bytes();
        let is_object = bytes[start] == b'{';
        let mut members = Vec::new();
        if !is_object && bytes[start] != b'[' {
            return members;
        }
        let mut at = self.skip_space(start + 1);
        while !matches!(bytes[at], b'}' | b']') {
            let start = at;
            let key = is_object.then(|| {
                let end = self.skip_value(start);
                at = self.skip_space(self.skip_space(end) + 1);
                from_str(&self.text[start..end]).unwrap_or_default()
            });
            let end = self.skip_value(at);
            members.push(Member {
                start,
                key,
                value: at..end,
            });
            at = self.skip_space(end);
            if bytes[at] == b',' {
                at = self.skip_space(at + 1);
            }
        }
        members
    }

    fn skip_space(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start_matches(is_space).len()
    }

    /// The end of the value that begins there; the text is known to be right.
    fn skip_value(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let (mut at, mut depth) = (start, 0);
        loop {
            match bytes[at] {
                b'"' => {
                    at += 1;
                    while bytes[at] != b'"' {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ if depth == 0 => {
                    let ends = |byte: &u8| b",]} \t\r\n".contains(byte);
                    return bytes[at..]
                        .iter()
                        .position(ends)
                        .map_or(bytes.len(), |length| at + length);
                }
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
    }

    /// Whether the object is written over several lines, as a new one is.
    fn is_spread(&self) -> bool {
        let root = self.root();
        match self.members(root.start).first() {
            Some(first) => self.text[root.start..first.start].contains('\n'),
            None => true,
        }
    }

    /// What one level is indented by.
    fn unit(&self) -> &str {
        let root = self.root();
        let first = self.members(root.start).into_iter().next();
        let gap = first.map_or("", |first| &self.text[root.start + 1..first.start]);
        gap.rfind('\n').map_or("  ", |at| &gap[at + 1..])
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// What the line of this place begins with.
    fn indent_at(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let rest = &self.text[line..at];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    fn pretty(&self, value: &Value, indent: &str) -> String {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.unit().as_bytes());
        let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
        let text = written
            .ok()
            .and_then(|()| String::from_utf8(bytes).ok())
            .unwrap_or_else(|| value.to_string());
        text.replace('\n', &format!("{}{indent}", self.line_end()))
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn key_of(part: &Part, colon: &str) -> String {
    match part {
        Part::Key(key) => format!("{}{colon}", Value::from(key.as_str())),
        Part::Item(_) => String::new(),
    }
}

/// A path as a person reads it.
pub(crate) fn shown(path: &[Part]) -> String {
    let keys = path.iter().map(|part| match part {
        Part::Key(key) => key.as_str(),
        Part::Item(_) => "[]",
    });
    keys.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
