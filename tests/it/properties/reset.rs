//! Whatever words name the end of a limit, it is a time that a calendar has. The first byte of an input chooses between
//! words and the file of a thread, four more say when they are read.

use super::reader::is_in_calendar;
use ralph::testing::{reset_in_thread, reset_time};

pub fn holds(input: &[u8]) {
    let Some(([kind, now @ ..], said)) = input.split_first_chunk::<5>() else {
        return;
    };
    if kind % 2 == 1 {
        reset_in_thread(said);
        return;
    }
    let now_ms = i64::from(u32::from_le_bytes(*now)) * 1000;
    let words = String::from_utf8_lossy(said);
    let Some(found) = reset_time(&words, now_ms) else {
        return;
    };
    assert!(is_in_calendar(found), "{words:?} is {found}");
    assert_eq!(reset_time(&words, now_ms), Some(found), "{words:?}");
}

/// The forms that agents use.
pub fn seeds() -> Vec<Vec<u8>> {
    let words = [
        "10:05pm (UTC)",
        "10pm (America/New_York)",
        "12 a.m.",
        "Nov 18, 8:05pm (UTC)",
        "Feb 29th, 2027 8:05 PM (GMT)",
        "Sept. 31",
        "2026-12-01 at 00:00 UTC",
        "2026-12-01T00:00:05Z",
        "22:05:10 Z",
        "1794783030",
        "1794783030500",
        "in 1 hour 5 minutes",
        "1.5s",
        "2d 3h 4m 500ms",
    ];
    let limits = r#"{"type":"event_msg","payload":{"rate_limits":{"primary":{"used_percent":100.0,"resets_at":1794783030},"secondary":{"used_percent":5,"resets_at":1794999999}}}}"#;
    let now = 1_794_772_830_u32.to_le_bytes();
    let input = |kind: u8, said: &str| [&[kind], &now[..], said.as_bytes()].concat();
    words
        .map(|said| input(0, said))
        .into_iter()
        .chain([input(1, limits)])
        .collect()
}
