//! Whatever a message says about the reset of a limit, the parsed time is within the calendar.
//!
//! The first byte of an input selects between a message and a Codex rollout file, the next four are
//! the current time.

use super::decoder::is_in_calendar;
use ralph::testing::{codex_rollout_reset, reset_time};

pub fn check(input: &[u8]) {
    let Some(([kind, now @ ..], bytes)) = input.split_first_chunk::<5>() else {
        return;
    };
    if kind % 2 == 1 {
        codex_rollout_reset(bytes);
        return;
    }
    let now_ms = i64::from(u32::from_le_bytes(*now)) * 1000;
    let text = String::from_utf8_lossy(bytes);
    let Some(found) = reset_time(&text, now_ms) else {
        return;
    };
    assert!(is_in_calendar(found), "{text:?} is {found}");
    assert_eq!(reset_time(&text, now_ms), Some(found), "{text:?}");
}

/// The formats that agents use.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
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
    let input = |kind: u8, text: &str| [&[kind], &now[..], text.as_bytes()].concat();
    texts
        .map(|text| input(0, text))
        .into_iter()
        .chain([input(1, limits)])
        .collect()
}
