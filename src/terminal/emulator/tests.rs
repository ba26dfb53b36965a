//! Tests of the emulator: screen contents, and answers to queries.

use super::*;

fn terminal(service: TerminalOptions) -> Emulator {
    Emulator::new(service, ScreenSize::new(4, 10).unwrap(), true)
}

fn service() -> TerminalOptions {
    TerminalOptions {
        prompt: "go".into(),
        ready: None,
        ready_timeout: Duration::from_secs(30),
        done_pattern: None,
    }
}

fn text_of(pieces: &[&str]) -> String {
    let mut terminal = terminal(service());
    for piece in pieces {
        terminal.feed(piece.as_bytes());
    }
    terminal.finish().0
}

#[test]
fn rows_that_were_broken_in_two_are_one_line_also_when_they_scrolled_away() {
    let text = "0123456789abcdef\r\n";
    assert_eq!(text_of(&[text]).trim_end(), "0123456789abcdef");
    assert_eq!(
        text_of(&[text, "1\r\n2\r\n3\r\n4\r\n5"]),
        "0123456789abcdef\n1\n2\n3\n4\n5"
    );
    for gone in 1..6 {
        let lines = "\r\n".repeat(gone);
        assert!(
            text_of(&[text, &lines]).starts_with("0123456789abcdef\n"),
            "{gone}"
        );
    }
    assert!(text_of(&["a          b\r\n", "1\r\n2\r\n3\r\n4\r\n5"]).starts_with("a          b\n1"));
}

#[test]
fn what_a_second_screen_showed_is_remembered_however_it_comes() {
    let text = "main\x1b[?25l\x1b[?1049h\x1b[2;2Hsecond\x1b[?1006;1049lend";
    for size in 1..text.len() {
        let pieces: Vec<&str> = text
            .as_bytes()
            .chunks(size)
            .map(|piece| std::str::from_utf8(piece).unwrap())
            .collect();
        let all = text_of(&pieces);
        assert_eq!(all.matches("second").count(), 1, "{size}: {all}");
        assert!(all.contains("mainend"), "{size}: {all}");
    }
    assert!(
        text_of(&["main\x1b[?1049h\x1b[2;2Hsecond"]).contains("second"),
        "killed in there"
    );
}

#[test]
fn no_size_and_no_bytes_bring_a_screen_down() {
    let words: [&[u8]; 34] = [
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x1b",
        b"?",
        b";",
        b"9",
        b"65535",
        b"4294967296",
        b"1049",
        b"h",
        b"l",
        b"m",
        b"J",
        b"K",
        b"L",
        b"M",
        b"P",
        b"@",
        b"X",
        b"S",
        b"T",
        b"r",
        b"H",
        b"b",
        b"\r\n",
        b"\t",
        "日".as_bytes(),
        "e\u{301}".as_bytes(),
        "👩\u{200d}👩".as_bytes(),
        b"\xff\xfe",
        b"\x1b7",
        b"\x1b8",
        b"\x1bM",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for (rows, columns) in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 300), (300, 1), (5, 9)] {
        for _ in 0..150 {
            let mut screen =
                Emulator::new(service(), ScreenSize::new(rows, columns).unwrap(), true);
            for _ in 0..80 {
                screen.feed(words[random.usize(..words.len())]);
                if random.u8(..) < 8 {
                    screen.resize(ScreenSize::new(random.u16(1..4), random.u16(1..4)).unwrap());
                }
            }
            screen.look(Instant::now());
            screen.finish();
        }
    }
}

#[test]
fn who_asks_without_end_and_never_listens_is_not_answered_without_end() {
    let mut screen = terminal(service());
    for _ in 0..1000 {
        screen.feed("\x1b[c\x1b]11;?\x07".repeat(1000).as_bytes());
    }
    assert!(screen.keys().len() < 128 * 1024, "{}", screen.keys().len());
    screen.keys().clear();
    screen.feed(b"\x1b[5n");
    assert_eq!(
        screen.keys(),
        b"\x1b[0n",
        "who listens again is answered again"
    );
}

#[test]
fn a_command_without_an_end_is_given_up_and_what_comes_after_it_is_seen() {
    for begin in ["\x1b]0;", "\x1bP", "\x1b_"] {
        let mut screen = terminal(service());
        screen.feed(begin.as_bytes());
        for _ in 0..40 {
            screen.feed("x".repeat(32 * 1024).as_bytes());
        }
        screen.feed(b"\r\nseen");
        assert!(screen.finish().0.ends_with("\nseen"), "{begin:?}");
    }
}

#[test]
fn only_the_last_20_lines_of_a_screen_are_activity() {
    let mut screen = Emulator::new(service(), ScreenSize::new(40, 20).unwrap(), true);
    let mut shows = |bytes: &str| {
        let before = screen.active_at();
        screen.feed(bytes.as_bytes());
        screen.look(Instant::now());
        screen.active_at() != before
    };
    let rows: Vec<String> = (1..=40)
        .map(|row| format!("\x1b[{row};1Hrow {row}"))
        .collect();
    assert!(shows(&rows.concat()));
    assert!(!shows("\x1b[1;1Htick 1"), "a clock in the first row");
    assert!(!shows("\x1b[20;1Hx"), "the last line that is not activity");
    assert!(shows("\x1b[21;1Hx"));
}
