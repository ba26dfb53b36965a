//! Any loop file is parsed or rejected with a short reason, and a file that was written is parsed
//! again without loss.
//!
//! The first byte of an input selects what the rest is: the text of a file, or the values to write,
//! separated by zero bytes.

use ralph::testing::loop_file::LoopFile;

pub fn check(input: &[u8]) {
    let [kind, rest @ ..] = input else { return };
    let text = String::from_utf8_lossy(rest);
    if kind % 2 == 0 {
        match LoopFile::parse(&text) {
            Ok(file) => check_round_trip(&file),
            Err(reason) => assert!(!reason.is_empty() && reason.len() < 1000, "{reason}"),
        }
        return;
    }
    let mut pieces = text.split('\0').map(str::to_owned);
    let mut next = || pieces.next().filter(|text| !text.trim().is_empty());
    let file = LoopFile {
        active: kind & 2 == 0,
        iteration: u32::from(*kind) << (kind % 25),
        max_iterations: u32::from(*kind),
        promise: next(),
        started_at: next().unwrap_or_default(),
        session: next(),
        name: next(),
        prompt: next().unwrap_or_else(|| "x".into()),
    };
    check_round_trip(&file);
}

fn check_round_trip(file: &LoopFile) {
    let text = file.to_text();
    assert_eq!(LoopFile::parse(&text).as_ref(), Ok(file), "{text:?}");
    let line = format!("\niteration: {}\n", file.iteration);
    assert!(text.contains(&line), "people grep for this line: {text:?}");
}

/// Files of the original plugin and of ralph, and values that are hard to quote.
pub fn seeds() -> Vec<Vec<u8>> {
    let original = "---\nactive: true\niteration: 1\nmax_iterations: 20\ncompletion_promise: \"say \"DONE\" \\o/\"\nstarted_at: \"2026-01-02T03:04:05Z\"\n---\n\nBuild it\n---\nall\n";
    let ours = "---\nactive: false\niteration: 3\nmax_iterations: 0\ncompletion_promise: null\nstarted_at: \"x\"\nsession_id: \"a\\\"b\"\nloop: 'it''s'\nother: [1]\n---\n\nBuild it";
    let edited = format!("\u{feff}{}", original.replace('\n', "\r\n"));
    let values = "ALL \"DONE\"\n---\n\0now\0null\0~\0---\r\n\u{feff}\n---\n\"\\";
    let seeds = [(0, original), (0, ours), (0, edited.as_str()), (1, values)];
    seeds
        .map(|(kind, text)| [&[kind], text.as_bytes()].concat())
        .into()
}
