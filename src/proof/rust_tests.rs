//! Finds the test items of a Rust source file, and puts those of the original back.

use super::rust_items::{Unsure, skip_group, skip_item, skip_token, skip_trivia};
use std::ops::Range;

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

/// An item with its attributes.
#[derive(Debug)]
struct Item {
    range: Range<usize>,
    /// Where its attributes end.
    start: usize,
    is_test: bool,
}

fn scan(text: &str) -> Result<ItemScan, Unsure> {
    let mut found = ItemScan::default();
    let whole_file = &mut found.whole_file;
    let items = items(text, 0..text.len(), &mut |attribute| {
        *whole_file |= is_test_attribute(attribute);
    })?;
    for item in items {
        if item.is_test {
            found.tests.push(item.range);
        } else {
            find_nested(text, item.start..item.range.end, &mut found.nested)?;
        }
    }
    Ok(found)
}

/// Returns the items of a file, or of a block. Passes the attributes of the file or block itself.
fn items(
    text: &str,
    range: Range<usize>,
    inner: &mut dyn FnMut(&str),
) -> Result<Vec<Item>, Unsure> {
    let text = &text[..range.end];
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = range.start;
    if at == 0 && text.starts_with("#!") && !text.starts_with("#![") {
        at = text.find('\n').unwrap_or(text.len());
    }
    let mut attributes: Option<usize> = None;
    let mut is_test = false;
    loop {
        at = skip_trivia(bytes, at)?;
        if at >= bytes.len() {
            // Attributes without an item.
            return if attributes.is_none() {
                Ok(found)
            } else {
                Err(Unsure)
            };
        }
        if text[at..].starts_with("#![") {
            let end = skip_group(bytes, at + 2)?;
            inner(&text[at + 3..end - 1]);
            at = end;
        } else if bytes[at] == b'#' && bytes.get(skip_trivia(bytes, at + 1)?) == Some(&b'[') {
            attributes.get_or_insert(at);
            let open = skip_trivia(bytes, at + 1)?;
            let end = skip_group(bytes, open)?;
            is_test |= is_test_attribute(&text[open + 1..end - 1]);
            at = end;
        } else {
            let end = skip_item(bytes, at)?;
            found.push(Item {
                range: attributes.take().unwrap_or(at)..end,
                start: at,
                is_test: std::mem::take(&mut is_test),
            });
            at = end;
        }
    }
}

/// Returns the texts of a file's tests, and of what else exists only for them. Modules are taken
/// apart and imports left out, so that the texts are the same after the tests have moved to another
/// file.
pub(super) fn test_texts(text: &str) -> Result<Vec<String>, Unsure> {
    let mut found = Vec::new();
    let is_for_tests = scan(text)?.whole_file;
    add_test_texts(text, 0..text.len(), is_for_tests, "", &mut found)?;
    Ok(found)
}

/// Adds the texts in a file or module, all of them if it `is_for_tests`. Each begins with the
/// `conditions` under which the module exists.
fn add_test_texts(
    text: &str,
    range: Range<usize>,
    is_for_tests: bool,
    conditions: &str,
    found: &mut Vec<String>,
) -> Result<(), Unsure> {
    let mut conditions = conditions.to_owned();
    let items = items(text, range, &mut |attribute| {
        conditions += &condition(&format!("#[{attribute}]"));
    })?;
    for item in items {
        let is_for_tests = is_for_tests || item.is_test;
        let mut add = |text: &str| found.push(conditions.clone() + &without_indents(text));
        let (word, body) = first_word(text, &item)?;
        if let Some(body) = body {
            let attributes = &text[item.range.start..item.start];
            let conditions = conditions.clone() + &condition(attributes);
            add_test_texts(text, body, is_for_tests, &conditions, found)?;
        } else if is_for_tests && word != "use" {
            add(&text[item.range]);
        } else if !is_for_tests {
            let mut nested = Vec::new();
            find_nested(text, item.start..item.range.end, &mut nested)?;
            for item in nested {
                add(&text[item.range]);
            }
        }
    }
    Ok(())
}

/// Returns the attributes of a module, if they say more about when it exists than that it has tests.
fn condition(attributes: &str) -> String {
    let text: String = attributes.split_whitespace().collect();
    let text = text.replace("#[cfg(test)]", "");
    if text.contains("cfg") {
        text
    } else {
        String::new()
    }
}

/// Returns the word that says what an item is, and the content of a module.
fn first_word<'a>(text: &'a str, item: &Item) -> Result<(&'a str, Option<Range<usize>>), Unsure> {
    let bytes = &text.as_bytes()[..item.range.end];
    let mut at = item.start;
    let word = |at: &mut usize| -> Result<&'a str, Unsure> {
        let start = skip_trivia(bytes, *at)?;
        *at = start;
        if start < bytes.len() {
            *at = skip_token(bytes, start)?;
        }
        text.get(start..*at).ok_or(Unsure)
    };
    let mut first = word(&mut at)?;
    if first == "pub" {
        let next = skip_trivia(bytes, at)?;
        if bytes.get(next) == Some(&b'(') {
            at = skip_group(bytes, next)?;
        }
        first = word(&mut at)?;
    }
    if first == "mod" {
        word(&mut at)?;
        let open = skip_trivia(bytes, at)?;
        if bytes.get(open) == Some(&b'{') {
            let end = skip_group(bytes, open)?;
            return Ok((first, Some(open + 1..end - 1)));
        }
    }
    Ok((first, None))
}

/// Returns a text without empty lines and without white space at the ends of its lines.
fn without_indents(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
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
