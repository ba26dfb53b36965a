//! Tests of redaction.

use super::*;
use crate::engine::Act;

fn redactor_of(variables: &[(&str, &str)]) -> Redactor {
    Redactor::from_vars(
        variables
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    )
}

/// Redacts a text that arrives in pieces of `size` bytes.
fn redact_in_pieces(redactor: &Redactor, text: &[u8], size: usize) -> String {
    let mut stream_redactor = StreamRedactor::new(redactor, false);
    let mut shown = Vec::new();
    text.chunks(size)
        .for_each(|piece| shown.extend_from_slice(&stream_redactor.feed(piece)));
    shown.extend_from_slice(&stream_redactor.finish());
    String::from_utf8_lossy(&shown).into_owned()
}

fn redactor() -> Redactor {
    let all = [
        ("MY_API_KEY", "sk-abcdef-123456"),
        ("LONGER_TOKEN", "sk-abcdef-123456-and-more"),
        ("SSH_AUTH_SOCK", "/tmp/socket-of-agent"),
        ("KEY_COUNT", "1234567890"),
        ("KEYBOARD", "querty-layout"),
        ("SHORT_KEY", "abc"),
        ("EDITOR", "sk-some-editor"),
    ];
    redactor_of(&all)
}

#[test]
fn secrets_are_replaced_by_their_names_and_nothing_else_is() {
    for (text, redacted) in [
        ("the key sk-abcdef-123456.", "the key [MY_API_KEY]."),
        ("sk-abcdef-123456-and-more", "[LONGER_TOKEN]"),
        (
            "sk-abcdef-123456sk-abcdef-123456",
            "[MY_API_KEY][MY_API_KEY]",
        ),
        (
            "/tmp/socket-of-agent 1234567890 querty-layout abc",
            "/tmp/socket-of-agent 1234567890 querty-layout abc",
        ),
        ("sk-some-editor sk-abcdef", "sk-some-editor sk-abcdef"),
    ] {
        assert_eq!(redactor().redact_text(text), redacted);
    }
}

#[test]
fn a_value_is_a_secret_without_the_whitespace_at_its_ends_too() {
    let redactor = redactor_of(&[("MY_KEY", " ab cd\nef-gh\n"), ("BLANK_KEY", "x         ")]);
    assert_eq!(redactor.redact_text("(ab cd\nef-gh) x"), "([MY_KEY]) x");
}

#[test]
fn a_redacted_pattern_matches_redacted_output() {
    let redactor = redactor_of(&[
        ("MY_KEY", "a.b+c(d)-12"),
        ("PEM_KEY", "é.first-line-of-it\nx"),
    ]);
    for (pattern, redacted, names) in [
        (
            r"^done a\.b\+c\(d\)-12$",
            r"^done \[MY_KEY\]$",
            &["MY_KEY"][..],
        ),
        (r"(ü)a.b+c(d)-12.", r"(ü)\[MY_KEY\].", &["MY_KEY"]),
        (r"é\.first-line-of-it", r"\[PEM_KEY:1\]", &["PEM_KEY"]),
        (r"^no secret\.$", r"^no secret\.$", &[]),
    ] {
        let mut text = pattern.to_owned();
        assert_eq!(redactor.redact_pattern(&mut text), names);
        assert_eq!(text, redacted);
    }
}

#[test]
fn a_secret_is_redacted_however_the_bytes_are_split() {
    let text = b"a sk-abcdef-123456 b sk-abcdef-123456-and-more c sk-abc";
    for size in 1..text.len() {
        let shown = redact_in_pieces(&redactor(), text, size);
        assert_eq!(shown, "a [MY_API_KEY] b [LONGER_TOKEN] c sk-abc", "{size}");
    }
}

#[test]
fn a_secret_whose_end_may_start_another_is_redacted() {
    let all = [("A_KEY", "abcdefga"), ("B_KEY", "gabcdefgh")];
    let redactor = redactor_of(&all);
    for (text, redacted) in [
        ("abcdefga", "[A_KEY]"),
        ("abcdefga.", "[A_KEY]."),
        ("abcdefgabcdefga", "[A_KEY]bcdefga"),
        ("gabcdefga", "g[A_KEY]"),
        ("gabcdefgh", "[B_KEY]"),
    ] {
        assert_eq!(redactor.redact_text(text), redacted);
        for size in 1..=text.len() {
            let shown = redact_in_pieces(&redactor, text.as_bytes(), size);
            assert_eq!(shown, redacted, "{text} by {size}");
        }
    }
}

#[test]
fn at_a_terminal_the_rest_of_a_secret_is_redacted_after_its_start_was_shown() {
    let mut stream_redactor = StreamRedactor::new(&redactor(), true);
    let mut shown = Vec::new();
    for byte in b"a sk-abcdef-123456 b sk-sk-abcdef-123456 sk-ab" {
        shown.extend_from_slice(&stream_redactor.feed(&[*byte]));
    }
    assert_eq!(
        String::from_utf8_lossy(&shown),
        "a sk-[MY_API_KEY] b sk-sk-[MY_API_KEY] sk-"
    );
    assert_eq!(stream_redactor.finish(), b"ab");
}

#[test]
fn at_a_terminal_a_possible_start_of_a_secret_is_shown_if_it_is_short() {
    let mut stream_redactor = StreamRedactor::new(&redactor(), true);
    assert_eq!(&*stream_redactor.feed(b"$ s"), b"$ s");
    assert_eq!(
        &*StreamRedactor::new(&redactor(), true).feed(b"key sk-abc"),
        b"key "
    );
}

const ODD: &str = "pa\"ss\\wo\nrd/é𝄞<&>";

/// A made-up private key.
const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7/l+tests0001\n\
    q3bWm9Y0n/ThisIsNotAKey+AtAll/ButItLooksLikeOne+ForTests/xyz0002\n\
    lastLineOfIt+tests=\n-----END PRIVATE KEY-----\n";

/// Returns a text as different programs write it in a JSON string.
fn json_forms(text: &str) -> Vec<String> {
    let minimal = serde_json::to_string(text).unwrap();
    let minimal = minimal[1..minimal.len() - 1].to_owned();
    let escape = |c: char| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter();
        let units: Vec<String> = units.map(|unit| format!("\\u{unit:04x}")).collect();
        units.concat()
    };
    let each = |escaped: &dyn Fn(char) -> bool| -> String {
        let chars = minimal.chars();
        chars
            .map(|c| if escaped(c) { escape(c) } else { c.into() })
            .collect()
    };
    let ascii = each(&|c| !c.is_ascii());
    let twice = serde_json::to_string(&minimal).unwrap();
    vec![
        with_upper_case_digits(&ascii),
        each(&|c| "<>&'+".contains(c)),
        minimal.replace('/', "\\/"),
        text.chars().map(escape).collect(),
        twice[1..twice.len() - 1].to_owned(),
        ascii,
        minimal,
    ]
}

fn with_upper_case_digits(json: &str) -> String {
    let mut parts = json.split("\\u");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(4);
        text.extend(["\\u", &digits.to_uppercase(), rest]);
    }
    text
}

#[test]
fn a_secret_is_found_however_it_is_escaped_and_the_json_stays_valid() {
    let base64 = "s3cr3t-Value+/=12345";
    let redactor = redactor_of(&[("ODD_KEY", ODD), ("B64_KEY", base64), ("PEM_KEY", PEM)]);
    for (name, value) in [("ODD_KEY", ODD), ("B64_KEY", base64), ("PEM_KEY", PEM)] {
        for form in json_forms(value) {
            let line = format!("{{\"a\\\\\":\"\\n{form}\\\"\",\"b\":\"{form}{form}\"}}");
            let shown = redactor.redact_text(&line);
            let value: serde_json::Value = serde_json::from_str(&shown).expect(&shown);
            assert_eq!(value["a\\"], format!("\n[{name}]\""), "{form}");
            assert_eq!(value["b"], format!("[{name}][{name}]"), "{form}");
            for size in 1..40 {
                assert_eq!(
                    redact_in_pieces(&redactor, line.as_bytes(), size),
                    shown,
                    "{form} by {size}"
                );
            }
        }
    }
}

#[test]
fn a_secret_is_found_in_colors_and_between_control_characters() {
    let redactor = redactor_of(&[("MY_KEY", "s3cr3t-value")]);
    for text in [
        "s3c\x1b[01;31m\x1b[Kr3t\x1b[m-value",
        "s3c\x1b(Br3t-value",
        "s3c\0r3t-\rva\x07lue",
        "s3c\\u001b[01;31mr3t-value",
    ] {
        assert_eq!(redactor.redact_text(text), "[MY_KEY]", "{text:?}");
        for size in 1..text.len() {
            let shown = redact_in_pieces(&redactor, text.as_bytes(), size);
            assert_eq!(shown, "[MY_KEY]", "{text:?} by {size}");
        }
    }
}

#[test]
fn each_long_line_of_a_value_is_a_secret_of_its_own() {
    let escaped = PEM.replace('\n', "\\n");
    for value in [PEM, &escaped] {
        let redactor = redactor_of(&[("PEM_KEY", value)]);
        for whole in [PEM, &escaped, &PEM.replace('\n', "\r\n")] {
            assert_eq!(redactor.redact_text(whole), "[PEM_KEY]");
        }
        let folded = PEM.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(redactor.redact_text(&folded), "[PEM_KEY]");
        let diff = PEM.replace('\n', "\n+");
        assert_eq!(
            redactor.redact_text(&diff),
            "-----BEGIN PRIVATE KEY-----\n+[PEM_KEY:2]\n+[PEM_KEY:3]\n+[PEM_KEY:4]\n\
             +-----END PRIVATE KEY-----\n+"
        );
    }
}

#[test]
fn a_value_of_few_characters_and_many_backslashes_does_not_hide_words() {
    let redactor = redactor_of(&[("MY_KEY", r"\\\\\\ab"), ("OTHER_KEY", r"\\\\\\\\")]);
    let words = r"table \ab ab\ tab";
    assert_eq!(redactor.redact_text(words), words);
    assert_eq!(redactor.redact_text(r"is \\\\\\ab."), r"is \\\\\\[MY_KEY].");
    let redactor = redactor_of(&[("MY_KEY", r"ab\\\\\\")]);
    for size in 1..10 {
        let shown = redact_in_pieces(&redactor, br"tab is ab\\\\\\", size);
        assert_eq!(shown, r"tab is [MY_KEY]\\\\\\", "{size}");
    }
}

#[test]
fn endless_escapes_are_not_held_back_forever() {
    let redactor = redactor_of(&[("MY_KEY", "s3cr3t-value")]);
    for endless in [&b"\\"[..], b"\x1b[0m", b"\0"] {
        let mut stream_redactor = StreamRedactor::new(&redactor, false);
        let mut shown = stream_redactor.feed(b"s3cr").len();
        for _ in 0..10_000 {
            shown += stream_redactor.feed(endless).len();
        }
        assert!(shown > 5_000, "{endless:?}: {shown}");
    }
}

#[test]
fn what_was_redacted_in_a_plan_is_restored_exactly() {
    let redactor = redactor_of(&[("ODD_KEY", ODD), ("PEM_KEY", PEM)]);
    let json = serde_json::to_string(ODD).unwrap();
    let line = PEM.lines().nth(2).unwrap();
    let typed = format!("curl -H '{ODD}' -d {json} '{PEM}' '{line}' [ODD_KEY]");
    let mut text = typed.clone();
    let names = redactor.redact_all([&mut text].into_iter());
    assert_eq!(names, ["ODD_KEY", "PEM_KEY"]);
    let redacted = "curl -H '[ODD_KEY]' -d \"[ODD_KEY:json]\" '[PEM_KEY]' '[PEM_KEY:3]' [ODD_KEY]";
    assert_eq!(text, redacted);
    let restored = redactor.restore(&text, &names);
    assert_eq!(restored, typed.replace("[ODD_KEY]", ODD));
}

#[test]
fn a_text_that_was_cut_does_not_end_with_the_start_of_a_secret() {
    assert_eq!(redactor().redact_cut("the key sk-abcdef-12345"), "the key ");
    assert_eq!(
        redactor().redact_cut("the key sk-abcdef-123456."),
        "the key [MY_API_KEY]."
    );
}

#[test]
fn the_acts_of_a_message_are_redacted_as_one_text() {
    let value = "s3cr3t-Value+/=12345";
    let message = format!("it is {value}, s3c");
    let redactor = redactor_of(&[("MY_KEY", value)]);
    for size in 1..message.len() {
        let mut acts = ActRedactor::new(&redactor).unwrap();
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut shown = |act: Act<'_>| match act {
            Act::Text(piece) => text += &piece,
            Act::Thinking(piece) => thinking += &piece,
            Act::Finished(all) => assert_eq!(all, "it is [MY_KEY], s3c"),
            Act::Cost(_) => {}
            other => panic!("{other:?}"),
        };
        for piece in message.as_bytes().chunks(size) {
            let piece = std::str::from_utf8(piece).unwrap();
            acts.redact(Act::Text(piece.into()), &mut shown);
            acts.redact(Act::Cost(1.0), &mut shown);
            acts.redact(Act::Thinking(piece.into()), &mut shown);
            acts.redact(Act::keepalive(), &mut shown);
        }
        acts.redact(Act::Finished(message.as_str().into()), &mut shown);
        assert_eq!(text, "it is [MY_KEY], s3c", "{size}");
        assert_eq!(thinking, text, "{size}");
    }
}

#[test]
fn a_secret_is_found_where_a_longer_one_only_seems_to_be() {
    let redactor = redactor_of(&[("ONE_KEY", "aaaaaaaaa"), ("OTHER_KEY", "aaaaaaaa")]);
    let text = r"baaaaaaaa\abab";
    let redacted = redactor.redact_text(text).into_owned();
    assert_eq!(redacted, r"b[OTHER_KEY]\abab");
    for size in 1..text.len() {
        assert_eq!(redact_in_pieces(&redactor, text.as_bytes(), size), redacted);
    }
}
