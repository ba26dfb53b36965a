//! Whatever stands on a sheet for people is read or refused in few words, and what is written on one is read again. The
//! first byte of an input chooses between a sheet's text and what is to be written, in pieces that a zero byte ends.

use ralph::testing::loop_file::Sheet;

pub fn holds(input: &[u8]) {
    let [kind, rest @ ..] = input else { return };
    let text = String::from_utf8_lossy(rest);
    if kind % 2 == 0 {
        match Sheet::read(&text) {
            Ok(sheet) => is_read_again(&sheet),
            Err(wrong) => assert!(!wrong.is_empty() && wrong.len() < 1000, "{wrong}"),
        }
        return;
    }
    let mut pieces = text.split('\0').map(str::to_owned);
    let mut words = || pieces.next().filter(|words| !words.trim().is_empty());
    let sheet = Sheet {
        active: kind & 2 == 0,
        iteration: u32::from(*kind) << (kind % 25),
        max_iterations: u32::from(*kind),
        promise: words(),
        started_at: words().unwrap_or_default(),
        session: words(),
        name: words(),
        prompt: words().unwrap_or_else(|| "x".into()),
    };
    is_read_again(&sheet);
}

fn is_read_again(sheet: &Sheet) {
    let text = sheet.text();
    assert_eq!(Sheet::read(&text).as_ref(), Ok(sheet), "{text:?}");
    let line = format!("\niteration: {}\n", sheet.iteration);
    assert!(text.contains(&line), "people look for it: {text:?}");
}

/// Sheets of both kinds, and words that are hard to write down.
pub fn seeds() -> Vec<Vec<u8>> {
    let foreign = "---\nactive: true\niteration: 1\nmax_iterations: 20\ncompletion_promise: \"say \"DONE\" \\o/\"\nstarted_at: \"2026-01-02T03:04:05Z\"\n---\n\nBuild it\n---\nall\n";
    let ours = "---\nactive: false\niteration: 3\nmax_iterations: 0\ncompletion_promise: null\nstarted_at: \"x\"\nsession_id: \"a\\\"b\"\nloop: 'it''s'\nother: [1]\n---\n\nBuild it";
    let edited = format!("\u{feff}{}", foreign.replace('\n', "\r\n"));
    let words = "ALL \"DONE\"\n---\n\0now\0null\0~\0---\r\n\u{feff}\n---\n\"\\";
    let seeds = [(0, foreign), (0, ours), (0, edited.as_str()), (1, words)];
    seeds
        .map(|(kind, text)| [&[kind], text.as_bytes()].concat())
        .into()
}
