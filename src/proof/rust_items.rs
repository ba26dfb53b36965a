//! Finds where the items of a Rust source file end.
//!
//! This is no parser. Where it is not sure, it says so.

/// A file whose items cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsure;

/// Returns the end of the item that starts here: a semicolon, or the end of its block.
pub(super) fn skip_item(bytes: &[u8], start: usize) -> Result<usize, Unsure> {
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

pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Skips a group in brackets of any kind, which starts here.
pub(super) fn skip_group(bytes: &[u8], start: usize) -> Result<usize, Unsure> {
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
pub(super) fn skip_trivia(bytes: &[u8], mut at: usize) -> Result<usize, Unsure> {
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
pub(super) fn skip_token(bytes: &[u8], at: usize) -> Result<usize, Unsure> {
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
