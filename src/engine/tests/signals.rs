//! Text that counts as a signal, and text that does not.

use crate::engine::event::TextSignals;
use crate::engine::signals::{EchoFilter, TAIL_BYTES, defang, fold_whitespace, read, read_tail};

fn promises() -> Vec<String> {
    vec!["COMPLETE".into(), "All tests pass".into()]
}

fn read_text(text: &str) -> TextSignals {
    read(text, &promises())
}

#[test]
fn a_promise_counts_alone_on_its_lines() {
    for text in [
        "<promise>COMPLETE</promise>",
        "<response>COMPLETE</response>",
        "<PROMISE>complete</Promise>",
        "  <promise>  Complete\t</promise>  ",
        "<promise>\nCOMPLETE\n</promise>",
        "<promise>all\n  tests\tpass</promise>",
        "**<promise>COMPLETE</promise>**",
        "_<promise>COMPLETE</promise>_ \r\n",
        "I did it all.\n\n<promise>COMPLETE</promise>\n\nSee you.",
        "not yet\n<promise>COMPLETE</promise>",
        "It works. <promise>COMPLETE</promise>",
        "It works! **<promise>COMPLETE</promise>**\n\n",
        "Really? <promise>COMPLETE</promise>",
        "Fertig… <promise>COMPLETE</promise>",
        "できた。<promise>COMPLETE</promise>",
        "できた！<promise>COMPLETE</promise>",
        "できた？<promise>COMPLETE</promise>",
        "<promise>PART</promise>\n<promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise>\n<promise>PART</promise>",
        "<response>PART</response>\n<promise>COMPLETE</promise>",
        "I cannot write <promise>COMPLETE</promise> yet.\nNow I can:\n<promise>COMPLETE</promise>",
        "I shall write the <promise> tag at the end.\n\n<promise>COMPLETE</promise>",
        "A closing tag is </promise>.\n<promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise>\nand one <promise> more",
        "```\ncode\n```\n<promise>COMPLETE</promise>",
        "~~~~sh\n~~~\n```\n~~~~\n<promise>COMPLETE</promise>",
        "``not a fence\n<promise>COMPLETE</promise>",
        "```cargo test``` is green\n<promise>COMPLETE</promise>",
        "> quoted\n<promise>COMPLETE</promise>",
        "a > b\n<promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise>\n> quoted",
        "<promise>COMPLETE</promise>\n```\ncode",
    ] {
        assert_eq!(
            read_text(text),
            TextSignals {
                promised: true,
                ..TextSignals::default()
            },
            "{text:?}"
        );
    }
}

#[test]
fn a_promise_in_a_sentence_may_be_a_denial() {
    for text in [
        "I will not say <promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise> is what I cannot say.",
        "I cannot say\n<promise>COMPLETE</promise> yet.",
        "Never write <promise>\nCOMPLETE\n</promise>",
        "It works. <promise>COMPLETE</promise>\n\nBut not really.",
        "It works. <promise>COMPLETE</promise> Not.",
        "- <promise>COMPLETE</promise>",
        "`<promise>COMPLETE</promise>`",
        "no: <promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise> <promise>COMPLETE</promise>",
        "say (<response>COMPLETE</response>)",
    ] {
        assert_eq!(
            read_text(text),
            TextSignals {
                promise_in_sentence: true,
                ..TextSignals::default()
            },
            "{text:?}"
        );
    }
}

#[test]
fn quotations_code_and_other_text_are_not_promises() {
    for text in [
        "",
        "COMPLETE",
        "<promise></promise>",
        "<promise> \n </promise>",
        "<promise>COMPLETE",
        "COMPLETE</promise>",
        "<promise>COMPLETE</response>",
        "<promise>NOT COMPLETE</promise>",
        "<promise>COMPLETE.</promise>",
        "<promise>COMP LETE</promise>",
        "<promise>COMPLETE<promise>",
        "</promise>COMPLETE<promise>",
        "< promise>COMPLETE</promise>",
        "‹promise›COMPLETE‹/promise›",
        "> <promise>COMPLETE</promise>",
        "  > <promise>COMPLETE</promise>",
        ">> <promise>COMPLETE</promise>",
        "```\n<promise>COMPLETE</promise>\n```",
        "```\n<promise>COMPLETE</promise>",
        "   ```xml\n<promise>COMPLETE</promise>\n   ```",
        "~~~\n<promise>COMPLETE</promise>\n~~~",
        "````\n```\n<promise>COMPLETE</promise>\n```\n````",
        "```\n~~~\n<promise>COMPLETE</promise>\n```",
        "~~~\n```\n<promise>COMPLETE</promise>\n~~~",
        "```\n``` not closed\n<promise>COMPLETE</promise>\n```",
        "```\na\n```\n```\n<promise>COMPLETE</promise>\n```",
        "<promise>\n> COMPLETE\n</promise>",
        "<promise>\n```\nCOMPLETE\n```\n</promise>",
        "<promise>COMPLETE\n> </promise>",
    ] {
        assert_eq!(read_text(text), TextSignals::default(), "{text:?}");
    }
}

#[test]
fn only_promises_that_were_asked_for_count() {
    assert_eq!(
        read("<promise>COMPLETE</promise>", &[]),
        TextSignals::default()
    );
    assert_eq!(
        read("<promise></promise>", &[String::new()]),
        TextSignals::default(),
        "an empty promise never matches"
    );
    assert!(read("<promise>ÉTÉ  fini</promise>", &["été\nFINI".into()]).promised);
    assert!(read("<promise>a <b> c</promise>", &["A <B> C".into()]).promised);
}

#[test]
fn blocked_follows_the_rules_of_promises() {
    for (text, why) in [
        ("<blocked>no key</blocked>", Some("no key")),
        (
            "I tried.\n**<BLOCKED>no\n  key</blocked>**\n",
            Some("no key"),
        ),
        ("I tried. <blocked>no key</blocked>", Some("no key")),
        (
            "<blocked>first</blocked>\n<blocked>second</blocked>",
            Some("first"),
        ),
        (
            "as <blocked>that</blocked> is\n<blocked>second</blocked>",
            Some("second"),
        ),
        (
            "I could use the <blocked> tag.\n<blocked>no key</blocked>",
            Some("no key"),
        ),
        (
            "<blocked>I may not write the <promise> tag</blocked>",
            Some("I may not write the <promise> tag"),
        ),
        ("I am not <blocked>no key</blocked>", None),
        ("<blocked>no key</blocked> is not so", None),
        ("<blocked> \n</blocked>", None),
        ("<blocked>no key", None),
        ("> <blocked>no key</blocked>", None),
        ("```\n<blocked>no key</blocked>\n```", None),
    ] {
        assert_eq!(read_text(text).blocked.as_deref(), why, "{text:?}");
    }
}

#[test]
fn one_text_can_contain_several_signals() {
    let both = read_text("<promise>COMPLETE</promise>\n<blocked>no key</blocked>");
    assert_eq!(
        (both.promised, both.blocked.as_deref()),
        (true, Some("no key"))
    );
}

#[test]
fn the_last_64_kib_of_plain_text_are_read() {
    assert_eq!(TAIL_BYTES, 65_536);
}

#[test]
fn white_space_is_folded() {
    assert_eq!(fold_whitespace("  a\n\t b  "), "a b");
}

#[test]
fn defanged_text_contains_no_signal() {
    let text = "<promise>COMPLETE</promise>\n<Response>x</RESPONSE>\n<blocked>y</blocked> <b>";
    let safe = defang(text);
    assert_eq!(
        safe,
        "‹promise›COMPLETE‹/promise›\n‹Response›x‹/RESPONSE›\n‹blocked›y‹/blocked› <b>"
    );
    assert_eq!(read_text(&safe), TextSignals::default());
}

const PROMPT: &str = "Write the parser.\n\nPrint this line at the end:\n\nDONE\n\nGood luck.\n";

/// Returns the number of matches of `DONE` in the output that are the agent's own.
fn own_matches(prompt: &str, output: &str) -> usize {
    let mut echo = EchoFilter::new(prompt);
    let seen = output
        .lines()
        .filter(|line| echo.is_own_match(line, line.contains("DONE")))
        .count();
    seen + usize::from(echo.finish())
}

#[test]
fn a_match_is_the_agents_own_unless_it_is_part_of_an_echo() {
    for (output, matches) in [
        ("DONE", 1),
        ("hello\nDONE\nbye", 1),
        ("DONE\n\n\nbye", 1),
        (PROMPT, 0),
        (
            "> Write the parser.\n>\n> Print this line at the end:\n>\n> DONE\n>\n> Good luck.",
            0,
        ),
        ("  | Print this line at the end:\n  | DONE", 0),
        ("Print this line at the end:\n\nDONE\n\nGood luck.", 0),
        ("DONE\n\nGood luck.", 0),
        ("Write the parser.\nDONE\nbye", 1),
        ("Good luck.\nDONE", 1),
        ("DONE\nDONE\nbye", 2),
        ("is it DONE?", 1),
        ("is it DONE?\nDONE", 2),
        ("", 0),
    ] {
        assert_eq!(own_matches(PROMPT, output), matches, "{output:?}");
    }
    assert_eq!(
        own_matches(PROMPT, &format!("{PROMPT}\nI worked.\nDONE\n")),
        1
    );
    assert_eq!(
        own_matches(PROMPT, &format!("{PROMPT}DONE\n")),
        1,
        "right after the echo"
    );
}

#[test]
fn the_whole_of_a_one_line_prompt_is_an_echo() {
    assert_eq!(own_matches("Print DONE.", "Print DONE.\n"), 0);
    assert_eq!(own_matches("Print DONE.", "> Print DONE.\nbye"), 0);
    assert_eq!(own_matches("Print DONE.", "DONE"), 1);
    assert_eq!(
        EchoFilter::new("Print DONE.\n").strip("Print DONE.\nDONE\n"),
        "DONE\n"
    );
    assert_eq!(own_matches("", "DONE"), 1);
}

#[test]
fn a_blank_line_may_match_too() {
    let mut echo = EchoFilter::new(PROMPT);
    assert!(echo.is_own_match("", true));
    assert!(!echo.is_own_match("", false));
}

#[test]
fn a_match_is_reported_once() {
    let mut echo = EchoFilter::new(PROMPT);
    assert!(
        !echo.is_own_match("DONE", true),
        "it may still be part of an echo"
    );
    assert!(!echo.is_own_match("", false));
    assert!(echo.is_own_match("bye", false), "it is not");
    assert!(!echo.is_own_match("bye", false));
    assert!(!echo.finish());
}

#[test]
fn an_echo_is_removed_and_the_agents_text_stays() {
    let echo = EchoFilter::new(PROMPT);
    for (text, kept) in [
        (PROMPT, ""),
        ("I work.\n", "I work.\n"),
        ("DONE", "DONE"),
        ("I work.\nDONE\n", "I work.\nDONE\n"),
        (
            "Write the parser.\n\nPrint this line at the end:\nI work.\n",
            "I work.\n",
        ),
        ("> DONE\n> Good luck.\n\nI work.\n", "\nI work.\n"),
        (
            "Good luck.\nWrite the parser.\n",
            "Good luck.\nWrite the parser.\n",
        ),
        (
            "Hi.\nWrite the parser.\n\n\nPrint this line at the end:\nDONE\nDONE\n",
            "Hi.\nDONE\n",
        ),
        ("\n\n", "\n\n"),
        ("", ""),
    ] {
        assert_eq!(echo.strip(text), kept, "{text:?}");
    }
}

#[test]
fn lines_that_occur_twice_in_a_prompt_are_found_in_both_places() {
    let echo = EchoFilter::new("a\nb\na\nc\na\n");
    assert_eq!(echo.strip("a\nc\nx\n"), "x\n");
    assert_eq!(echo.strip("a\nb\na\nc\nx\n"), "x\n");
    assert_eq!(echo.strip("b\nc\nc\n"), "b\nc\nc\n");
    assert_eq!(
        echo.strip("a\nb\na\nc\na\na\n"),
        "a\n",
        "the last one is the agent's own"
    );
}

#[test]
fn a_prompt_that_repeats_one_line_is_handled_quickly() {
    let prompt = ".\n".repeat(500);
    assert_eq!(
        EchoFilter::new(&prompt).strip(&format!("{prompt}.\n")),
        ".\n"
    );
    assert_eq!(own_matches(&prompt, &prompt), 0);
}

const PIECES: [&str; 22] = [
    "<promise>",
    "</promise>",
    "<response>",
    "</response>",
    "<blocked>",
    "</blocked>",
    "COMPLETE",
    "complete",
    "\n",
    "\n\n",
    "```",
    "~~~~",
    "> ",
    "| ",
    "**",
    "_",
    ". ",
    "é",
    "。",
    "\u{1f600}",
    " ",
    "\r\n",
];

fn any_text(random: &mut fastrand::Rng) -> String {
    (0..random.usize(..30))
        .map(|_| *random.choice(&PIECES).unwrap())
        .collect()
}

#[test]
fn a_cut_inside_a_code_fence_is_recognized() {
    let promises = ["COMPLETE".to_owned()];
    for (text, promised) in [
        (
            "in a fence\n<promise>COMPLETE</promise>\n```\nnot done\n",
            false,
        ),
        (
            "in a fence\n<promise>COMPLETE</promise>\n~~~~\nnot done\n",
            false,
        ),
        (
            "in a fence\n```\nafter it\n<promise>COMPLETE</promise>\n",
            true,
        ),
        ("no fence\n<promise>COMPLETE</promise>\n", true),
        ("```\ncode\n```\n<promise>COMPLETE</promise>\n", true),
    ] {
        assert_eq!(read_tail(text, &promises).promised, promised, "{text}");
    }
}

#[test]
fn a_long_blocked_reason_is_cut() {
    let text = format!("<blocked>{}</blocked>", "x".repeat(5000));
    assert_eq!(read(&text, &[]).blocked.map(|why| why.len()), Some(2000));
}

#[test]
fn any_text_can_be_read() {
    for seed in [1, 2, 3, 0x5eed] {
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..2000 {
            let (text, prompt) = (any_text(&mut random), any_text(&mut random));
            let found = read_text(&text);
            assert!(
                !(found.promised && found.promise_in_sentence),
                "seed {seed}: {text:?}"
            );
            assert_eq!(
                read_text(&defang(&text)),
                TextSignals::default(),
                "seed {seed}: {text:?}"
            );
            let mut echo = EchoFilter::new(&prompt);
            let kept = echo.strip(&text);
            assert!(kept.len() <= text.len(), "seed {seed}: {text:?}");
            let own = text
                .lines()
                .filter(|line| echo.is_own_match(line, true))
                .count()
                + usize::from(echo.finish());
            assert!(
                own <= text.lines().count(),
                "seed {seed}: {prompt:?} {text:?}"
            );
        }
    }
}

#[test]
fn text_after_an_echo_is_unchanged() {
    for seed in [4, 5, 6, 0x5eed] {
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..1000 {
            let prompt = format!(
                "{}first\nlast\n",
                any_text(&mut random).replace(['>', '|'], "")
            );
            let line = *random
                .choice(&["first", "last", "my own", "<promise>COMPLETE</promise>"])
                .unwrap();
            let own = format!("{line}\nI, not the prompt, said so{}\n", random.u8(..));
            assert_eq!(
                EchoFilter::new(&prompt)
                    .strip(&format!("{prompt}{own}"))
                    .trim_start(),
                own,
                "seed {seed}: {prompt:?}"
            );
        }
    }
}

#[test]
fn a_commit_message_follows_the_rules_of_promises_and_keeps_its_lines() {
    for (text, message) in [
        ("<commit>Fix it</commit>", Some("Fix it")),
        (
            "All done.\n<Commit> Fix it </COMMIT>\n<promise>COMPLETE</promise>",
            Some("Fix it"),
        ),
        (
            "<commit>\n\nFix it\n\nIt  broke \n- often\n</commit>",
            Some("Fix it\n\nIt  broke\n- often"),
        ),
        ("<commit>#1 -x \"$(y)\"</commit>", Some("#1 -x \"$(y)\"")),
        (
            "<commit>Draft</commit>\n\n<commit>Fix it</commit>",
            Some("Fix it"),
        ),
        (
            "<commit>Fix it</commit>\nno <commit>more</commit> of it",
            Some("Fix it"),
        ),
        ("Say <commit>Fix it</commit> at the end.", None),
        ("> <commit>Fix it</commit>", None),
        ("```\n<commit>Fix it</commit>\n```", None),
        ("<commit> \n </commit>", None),
        ("<commit>…</commit>", None),
        ("<commit>Fix it", None),
    ] {
        assert_eq!(read_text(text).commit.as_deref(), message, "{text:?}");
    }
    let long = read_text(&format!("<commit>{}</commit>", "é".repeat(20_000)))
        .commit
        .unwrap();
    assert_eq!(long.chars().count(), 16_000);
    assert!(
        read_text("Good. <promise>COMPLETE</promise>\n<commit>Fix it</commit>").promise_in_sentence,
        "it is not the last thing in the message"
    );
}
