//! Finds the test items of a Rust source file, and puts those of the original back.
//!
//! This is no parser: it finds where each item at the top of the file ends. Where it is not sure, it
//! says so.

use std::ops::Range;

/// A file whose items cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsure;

/// Returns whether the file has test items.
pub(super) fn has_tests(text: &str) -> Result<bool, Unsure> {
    let scan = scan(text)?;
    Ok(scan.whole_file || !scan.tests.is_empty() || !scan.nested.is_empty())
}

/// Returns the candidate with the test items of the original; `None` if both have the same ones.
/// The items go to the end of the file: their order has no meaning in Rust.
pub(super) fn with_original_tests(
    original: &str,
    candidate: &str,
) -> Result<Option<String>, Unsure> {
    let (before, now) = (scan(original)?, scan(candidate)?);
    if before.whole_file {
        return Ok((original != candidate).then(|| original.to_owned()));
    }
    let items = |text: &str, ranges: &[Range<usize>]| -> Vec<String> {
        ranges
            .iter()
            .map(|range| text[range.clone()].to_owned())
            .collect()
    };
    if now.whole_file || !has_same_nested(original, &before, candidate, &now) {
        return Err(Unsure);
    }
    let originals = items(original, &before.tests);
    if originals == items(candidate, &now.tests) {
        return Ok(None);
    }
    let mut merged = String::new();
    let mut end = 0;
    for range in &now.tests {
        merged.push_str(&candidate[end..range.start]);
        end = range.end;
    }
    merged.push_str(&candidate[end..]);
    for item in originals {
        merged.push('\n');
        merged.push_str(&item);
        merged.push('\n');
    }
    Ok(Some(merged))
}

/// Returns whether the candidate has the test items that the original has inside other items, where
/// an item's place matters. It may have more tests, but no more items that exist only in tests.
fn has_same_nested(original: &str, before: &ItemScan, candidate: &str, now: &ItemScan) -> bool {
    let mut wanted = before.nested.iter().peekable();
    for item in &now.nested {
        let text = &candidate[item.range.clone()];
        if wanted
            .peek()
            .is_some_and(|item| original[item.range.clone()] == *text)
        {
            wanted.next();
        } else if item.is_conditional {
            return false;
        }
    }
    wanted.peek().is_none()
}

/// Where a file has test items.
#[derive(Debug, Default)]
struct ItemScan {
    /// Items at the top of the file, with their attributes.
    tests: Vec<Range<usize>>,
    /// Items inside other items.
    nested: Vec<NestedItem>,
    /// Whether the whole file is a test: `#![cfg(test)]`.
    whole_file: bool,
}

/// A test item inside another item.
#[derive(Debug)]
struct NestedItem {
    range: Range<usize>,
    /// Whether it exists only in tests, instead of being a test.
    is_conditional: bool,
}

fn scan(text: &str) -> Result<ItemScan, Unsure> {
    let mut found = ItemScan::default();
    let mut at = if text.starts_with("#!") && !text.starts_with("#![") {
        text.find('\n').unwrap_or(text.len())
    } else {
        0
    };
    let bytes = text.as_bytes();
    let mut start: Option<usize> = None;
    let mut is_test = false;
    loop {
        at = skip_trivia(bytes, at)?;
        if at >= bytes.len() {
            // Attributes without an item.
            return if start.is_none() {
                Ok(found)
            } else {
                Err(Unsure)
            };
        }
        if text[at..].starts_with("#![") {
            let end = skip_group(bytes, at + 2)?;
            found.whole_file |= is_test_attribute(&text[at + 3..end - 1]);
            at = end;
        } else if bytes[at] == b'#' && bytes.get(skip_trivia(bytes, at + 1)?) == Some(&b'[') {
            start.get_or_insert(at);
            let open = skip_trivia(bytes, at + 1)?;
            let end = skip_group(bytes, open)?;
            is_test |= is_test_attribute(&text[open + 1..end - 1]);
            at = end;
        } else {
            let from = start.take().unwrap_or(at);
            let end = skip_item(bytes, at)?;
            if std::mem::take(&mut is_test) {
                found.tests.push(from..end);
            } else {
                find_nested(text, at..end, &mut found.nested)?;
            }
            at = end;
        }
    }
}

/// Adds the test attributes inside an item, each with what follows it in its item.
fn find_nested(text: &str, item: Range<usize>, found: &mut Vec<NestedItem>) -> Result<(), Unsure> {
    let bytes = text.as_bytes();
    let mut at = item.start;
    while at < item.end {
        if bytes[at] == b'#' && bytes.get(at + 1) == Some(&b'[') {
            let end = skip_group(bytes, at + 1)?;
            let attribute = &text[at + 2..end - 1];
            if is_test_attribute(attribute) {
                let item_end = skip_nested(bytes, end)?;
                found.push(NestedItem {
                    range: at..item_end,
                    is_conditional: attribute.trim_start().starts_with("cfg"),
                });
                at = item_end;
            } else {
                at = end;
            }
        } else {
            at = skip_token(bytes, at)?;
        }
    }
    Ok(())
}

/// Words with which an item or a statement begins, but no field and no arm of a `match`.
const ITEM_WORDS: [&[u8]; 15] = [
    b"pub", b"fn", b"mod", b"impl", b"struct", b"enum", b"trait", b"use", b"const", b"static",
    b"unsafe", b"async", b"extern", b"type", b"let",
];

/// Returns the end of what an attribute inside an item applies to: an item, a statement, a field, or
/// an arm of a `match`.
fn skip_nested(bytes: &[u8], mut at: usize) -> Result<usize, Unsure> {
    let mut is_item = None;
    loop {
        at = skip_trivia(bytes, at)?;
        let Some(byte) = bytes.get(at) else {
            return Err(Unsure);
        };
        match byte {
            b';' => return Ok(at + 1),
            b',' if is_item == Some(false) => return Ok(at + 1),
            b'}' | b')' | b']' => return Ok(at),
            b'#' if bytes.get(at + 1) == Some(&b'[') => at = skip_group(bytes, at + 1)?,
            b'{' => {
                at = skip_group(bytes, at)?;
                if is_item != Some(false) {
                    return Ok(at);
                }
            }
            b'(' | b'[' => at = skip_group(bytes, at)?,
            _ => {
                let end = skip_token(bytes, at)?;
                is_item.get_or_insert(ITEM_WORDS.contains(&&bytes[at..end]));
                at = end;
            }
        }
    }
}

/// Returns whether an attribute marks tests: `test`, `tokio::test`, or `cfg(…)` with `test` outside
/// of `not(…)`.
fn is_test_attribute(attribute: &str) -> bool {
    let text: String = attribute.chars().filter(|c| !c.is_whitespace()).collect();
    let path = text.split(['(', '=']).next().unwrap_or_default();
    let last = path.rsplit("::").next().unwrap_or_default();
    if matches!(last, "cfg" | "cfg_attr") {
        let mut rest = text.as_str();
        while let Some(index) = rest.find("test") {
            let before = &rest[..index];
            let is_part = |c: Option<char>| {
                c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '"'))
            };
            let is_word =
                !is_part(before.chars().next_back()) && !is_part(rest[index + 4..].chars().next());
            if is_word && !before.ends_with("not(") {
                return true;
            }
            rest = &rest[index + 4..];
        }
        return false;
    }
    matches!(
        last,
        "test"
            | "bench"
            | "rstest"
            | "test_case"
            | "proptest"
            | "quickcheck"
            | "wasm_bindgen_test"
            | "case"
    )
}

/// Returns the end of the item that starts here: a semicolon, or the end of its block.
fn skip_item(bytes: &[u8], start: usize) -> Result<usize, Unsure> {
    let mut at = start;
    let mut words: Vec<&[u8]> = Vec::new();
    let mut is_macro = false;
    while at < bytes.len() {
        at = skip_trivia(bytes, at)?;
        match bytes.get(at) {
            None => break,
            Some(b';') => return Ok(at + 1),
            Some(b'{') => {
                let end = skip_group(bytes, at)?;
                if ends_with_block(&words) || is_macro {
                    // A semicolon after the block belongs to nothing, but may be there.
                    let next = skip_trivia(bytes, end)?;
                    return Ok(if bytes.get(next) == Some(&b';') {
                        next + 1
                    } else {
                        end
                    });
                }
                at = end;
            }
            Some(b'(' | b'[') => at = skip_group(bytes, at)?,
            Some(b'}' | b')' | b']') => return Err(Unsure),
            Some(b'!') => {
                is_macro |= words.len() <= 3;
                at += 1;
            }
            Some(_) => {
                let end = skip_token(bytes, at)?;
                if is_name(bytes[at]) {
                    words.push(&bytes[at..end]);
                } else if words.is_empty() {
                    // No item begins with anything but a word or a path.
                    if bytes[at] != b':' {
                        return Err(Unsure);
                    }
                }
                at = end;
            }
        }
    }
    Err(Unsure)
}

/// Returns whether an item that begins with these words ends with its block, not with a semicolon.
fn ends_with_block(words: &[&[u8]]) -> bool {
    let mut words = words.iter();
    loop {
        match words.next() {
            Some(
                &b"pub" | &b"crate" | &b"super" | &b"self" | &b"in" | &b"default" | &b"unsafe"
                | &b"async",
            ) => {}
            Some(&b"const") => {
                // `const fn`, but not `const X: T = { … };`.
                return words.any(|word| *word == b"fn");
            }
            Some(&b"use" | &b"static" | &b"type" | &b"let") => return false,
            _ => return true,
        }
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Skips a group in brackets of any kind, which starts here.
fn skip_group(bytes: &[u8], start: usize) -> Result<usize, Unsure> {
    let mut open = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        at = skip_trivia(bytes, at)?;
        match bytes.get(at) {
            Some(b'{') => open.push(b'}'),
            Some(b'(') => open.push(b')'),
            Some(b'[') => open.push(b']'),
            Some(close @ (b'}' | b')' | b']')) => {
                if open.pop() != Some(*close) {
                    return Err(Unsure);
                }
                if open.is_empty() {
                    return Ok(at + 1);
                }
            }
            Some(_) => {
                at = skip_token(bytes, at)?;
                continue;
            }
            None => break,
        }
        at += 1;
    }
    Err(Unsure)
}

/// Skips white space and comments.
fn skip_trivia(bytes: &[u8], mut at: usize) -> Result<usize, Unsure> {
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(byte), _) if byte.is_ascii_whitespace() => at += 1,
            (Some(b'/'), Some(b'/')) => {
                at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
            }
            (Some(b'/'), Some(b'*')) => at = skip_block_comment(bytes, at)?,
            (Some(0xef), Some(0xbb)) if at == 0 => at += 3.min(bytes.len()),
            _ => return Ok(at),
        }
    }
}

fn skip_block_comment(bytes: &[u8], mut at: usize) -> Result<usize, Unsure> {
    let mut depth = 0_usize;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'/'), Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (Some(b'*'), Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok(at);
                }
            }
            (Some(_), _) => at += 1,
            (None, _) => return Err(Unsure),
        }
    }
}

/// Skips one token: a word with a literal that belongs to it, a literal, a comment or one character.
fn skip_token(bytes: &[u8], at: usize) -> Result<usize, Unsure> {
    match bytes[at] {
        b'"' => skip_string(bytes, at),
        b'\'' => skip_quote(bytes, at),
        b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => skip_trivia(bytes, at),
        byte if is_name(byte) => {
            let length = bytes[at..]
                .iter()
                .take_while(|byte| is_name(**byte))
                .count();
            let end = at + length;
            match (&bytes[at..end], bytes.get(end)) {
                (b"r" | b"br" | b"cr", Some(b'"' | b'#')) => skip_raw_string(bytes, end),
                (b"b" | b"c", Some(b'"')) => skip_string(bytes, end),
                (b"b", Some(b'\'')) => skip_quote(bytes, end),
                _ => Ok(end),
            }
        }
        _ => Ok(at + 1),
    }
}

fn skip_string(bytes: &[u8], start: usize) -> Result<usize, Unsure> {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return Ok(at + 1),
            Some(_) => at += 1,
            None => return Err(Unsure),
        }
    }
}

/// Skips a raw string, or the mark of a raw identifier, whose prefix ends here.
fn skip_raw_string(bytes: &[u8], start: usize) -> Result<usize, Unsure> {
    let hashes = bytes[start..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let mut at = start + hashes;
    if bytes.get(at) != Some(&b'"') {
        return Ok(at);
    }
    loop {
        at += 1;
        at += memchr::memchr(b'"', bytes.get(at..).unwrap_or_default()).ok_or(Unsure)?;
        let closing = bytes[at + 1..]
            .iter()
            .take_while(|byte| **byte == b'#')
            .count();
        if closing >= hashes {
            return Ok(at + 1 + hashes);
        }
    }
}

/// Skips a character literal or a lifetime.
fn skip_quote(bytes: &[u8], at: usize) -> Result<usize, Unsure> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let rest = bytes.get(at + 3..).ok_or(Unsure)?;
        return Ok(at + 3 + memchr::memchr(b'\'', rest).ok_or(Unsure)? + 1);
    }
    let text = bytes.get(at + 1..).unwrap_or_default();
    let length = match text.first() {
        None => return Err(Unsure),
        Some(byte) if byte.is_ascii() => 1,
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(_) => 2,
    };
    Ok(match text.get(length) {
        Some(b'\'') => at + 2 + length,
        // A lifetime: its name is skipped as a word.
        _ => at + 1,
    })
}
