//! What a screen shows, tells and answers.

use super::*;

fn terminal(service: Service) -> Terminal {
    Terminal::new(service, Size::new(4, 10).unwrap(), true)
}

fn service() -> Service {
    Service { prompt: "go".into(), ready: None, patience: Duration::from_secs(30), pattern: None }
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
    assert_eq!(text_of(&[text, "1\r\n2\r\n3\r\n4\r\n5"]), "0123456789abcdef\n1\n2\n3\n4\n5");
    for gone in 1..6 {
        let lines = "\r\n".repeat(gone);
        assert!(text_of(&[text, &lines]).starts_with("0123456789abcdef\n"), "{gone}");
    }
    assert!(text_of(&["a          b\r\n", "1\r\n2\r\n3\r\n4\r\n5"]).starts_with("a          b\n1"));
}

#[test]
fn what_a_second_screen_showed_is_remembered_however_it_comes() {
    let text = "main\x1b[?25l\x1b[?1049h\x1b[2;2Hsecond\x1b[?1006;1049lend";
    for size in 1..text.len() {
        let pieces: Vec<&str> =
            text.as_bytes().chunks(size).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
        let all = text_of(&pieces);
        assert_eq!(all.matches("second").count(), 1, "{size}: {all}");
        assert!(all.contains("mainend"), "{size}: {all}");
    }
    assert!(text_of(&["main\x1b[?1049h\x1b[2;2Hsecond"]).contains("second"), "killed in there");
}
