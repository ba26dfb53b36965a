//! However output is split into pieces and escaped for JSON, no secret is ever shown, and the result
//! is the same as for the whole output.
//!
//! The first bytes of an input are the lengths of two secrets and whether the output goes to a
//! terminal. The secrets follow, then the output.

use ralph::testing::redact_both_ways;

/// Maps a byte to one of a few characters, so that secrets overlap with themselves and each other.
/// Most of them are escaped in JSON, or stand for an escaped character there.
fn letter(byte: u8) -> char {
    ['a', 'b', 'n', 'a', 'b', '"', '\\', '\n', 'é'][usize::from(byte % 9)]
}

/// Returns a text as it is in a JSON string.
fn escape(text: &str) -> String {
    let json = serde_json::to_string(text).expect("a text is valid JSON");
    json[1..json.len() - 1].to_owned()
}

pub fn check(input: &[u8]) {
    let [one, other, terminal, rest @ ..] = input else {
        return;
    };
    let mut rest = rest.iter().copied();
    let secrets = [("ONE_KEY", one), ("OTHER_KEY", other)].map(|(name, length)| {
        let value: String = rest
            .by_ref()
            .take(8 + usize::from(length % 8))
            .map(letter)
            .collect();
        (name.to_owned(), value)
    });
    // Backslashes alone are no secret.
    let is_secret = |value: &str| value.chars().filter(|c| *c != '\\').count() >= 6;
    if secrets
        .iter()
        .any(|(_, value)| value.chars().count() < 8 || !is_secret(value))
    {
        return;
    }
    // A high byte is a part of a secret or starts a new piece; any other byte is a letter.
    let mut pieces = vec![String::new()];
    while let Some(byte) = rest.next() {
        let piece = pieces.last_mut().expect("there is a piece");
        match byte {
            0..=127 => piece.push(letter(byte)),
            128..=159 => pieces.push(String::new()),
            160.. => {
                let value = &secrets[usize::from(byte % 2)].1;
                let (from, to) = (usize::from(byte / 2 % 4), rest.next().unwrap_or(255));
                let count = value.chars().count() - usize::from(to % 4) - from;
                let part: String = value.chars().skip(from).take(count).collect();
                match to / 4 % 3 {
                    0 => piece.push_str(&part),
                    1 => piece.push_str(&escape(&part)),
                    _ => piece.push_str(&escape(&escape(&part))),
                }
            }
        }
    }
    let is_terminal = terminal % 2 == 1;
    let (whole, shown) = redact_both_ways(&secrets, is_terminal, &pieces);
    let (whole, shown) = (
        String::from_utf8_lossy(&whole),
        String::from_utf8_lossy(&shown),
    );
    if !is_terminal {
        assert_eq!(shown, whole, "{secrets:?} in {pieces:?}");
    }
    for (name, value) in &secrets {
        for value in [value.clone(), escape(value), escape(&escape(value))] {
            assert!(
                !whole.contains(&value) && !shown.contains(&value),
                "{name} {value} in {pieces:?}: {shown}"
            );
        }
    }
}

/// A secret that is printed whole, in two pieces, twice, escaped, and after a part of itself.
pub fn seeds() -> Vec<Vec<u8>> {
    let secrets = *b"abcabcabcaabcbacba";
    let outputs: [&[u8]; 5] = [
        &[160, 0],
        b"abc\x80abcabca",
        &[160, 0, 161, 0, 128, 97, 128, 161, 0],
        &[97, 160, 0, 163, 3, 128, 98],
        &[97, 160, 4, 128, 161, 8, 160, 8, 128, 128, 161, 4],
    ];
    // The second secret begins with a line break, whose escape has the letter of the rest.
    let line_break = b"\x02\x00\x02\x00\x00\x00\x01cbacbaa8888888:88aa888888b";
    // A secret that begins with the other one and is interrupted by a backslash.
    let interrupted = b"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x06\x00";
    // Two secrets of the same form, of which one ends with a backslash.
    let same_form = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\xf9\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00!\xff^!\x7f\xa1\x00bc\x80abcabca";
    // A secret that is mostly backslashes and line breaks.
    let breaks =
        b"#\x00\x96\xc3a\xc3\xa9a\n\xc3\xc3\xa9\xa9\"\xc3\xa9b\x1bb&\xc3\xa9\\n\xff\xff\xffa&\xa0";
    let inputs = outputs
        .into_iter()
        .flat_map(|output| [(0, output), (1, output)]);
    inputs
        .map(|(terminal, output)| [&[2, 0, terminal], &secrets[..], output].concat())
        .chain([
            line_break.to_vec(),
            interrupted.to_vec(),
            same_form.to_vec(),
            breaks.to_vec(),
        ])
        .collect()
}
