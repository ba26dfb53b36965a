//! Whatever an agent prints, its reader neither breaks nor counts what cannot be. The first byte chooses the agent, the
//! second where the rest is cut in two.
//!
//! `cargo +nightly fuzz run reader fuzz/corpus/reader testdata/streams`

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph::testing::Replay;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

static AGENTS: LazyLock<BTreeMap<String, Replay>> = LazyLock::new(Replay::all);

fuzz_target!(|input: &[u8]| {
    let [agent, cut, stream @ ..] = input else { return };
    let agent = AGENTS.values().nth(usize::from(*agent) % AGENTS.len()).expect("there is one");
    let read = |pieces: &[&[u8]]| {
        let mut acts = Vec::new();
        let told = agent.read(Path::new("/work"), pieces.iter().copied(), &mut |act| acts.push(format!("{act:?}")));
        assert!(told.0.cost_usd.is_none_or(|usd| usd.is_finite() && usd >= 0.0));
        (acts, told.1)
    };
    let whole = read(&[stream]);
    let (one, other) = stream.split_at(stream.len() * usize::from(*cut) / 256);
    // Plain text is told in the pieces that it comes in.
    if !whole.0.iter().any(|act| act.starts_with("Said") || act.contains("until_ms: Some")) {
        assert_eq!(read(&[one, other]), whole);
    }
});
