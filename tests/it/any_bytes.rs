//! Checks the properties that hold for any input on their seeds and on a bounded number of
//! mutations of them. `fuzz/` searches further.

use crate::properties::{
    decoder, hook, journal, loop_file, redaction, reset_time, settings, transcript,
};
use ralph::testing::Replay;
use std::collections::BTreeSet;
use std::path::Path;

/// A property, its seeds, and the number of mutations to try for each seed.
type Property = (fn(&[u8]), Vec<Vec<u8>>, usize);

fn properties() -> [Property; 8] {
    [
        (decoder::check, decoder::seeds(), 2),
        (reset_time::check, reset_time::seeds(), 200),
        (redaction::check, redaction::seeds(), 500),
        (hook::check, hook::seeds(), 200),
        (loop_file::check, loop_file::seeds(), 500),
        (transcript::check, transcript::seeds(), 100),
        (journal::check, journal::seeds(), 5),
        (settings::check, settings::seeds(), 50),
    ]
}

/// Overwrites or removes a few bytes, or inserts some from another input.
fn mutate(input: &[u8], other: &[u8], rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.usize(1..4) {
        let (from, length) = (rng.usize(0..=bytes.len()), rng.usize(0..8));
        let to = (from + length).min(bytes.len());
        match rng.u8(0..3) {
            0 => bytes[from..to]
                .iter_mut()
                .for_each(|byte| *byte = rng.u8(..)),
            1 => drop(bytes.drain(from..to)),
            _ => {
                let at = rng.usize(0..=other.len());
                bytes.splice(
                    from..from,
                    other[at..(at + length).min(other.len())].iter().copied(),
                );
            }
        }
    }
    bytes
}

#[test]
fn every_property_holds_for_its_seeds_and_mutations_of_them() {
    let mut rng = fastrand::Rng::with_seed(13);
    for (check, seeds, mutations) in properties() {
        for seed in &seeds {
            check(seed);
            for _ in 0..mutations {
                let other = &seeds[rng.usize(0..seeds.len())];
                check(&mutate(seed, other, &mut rng));
            }
        }
    }
}

#[test]
fn every_decoder_has_a_seed_that_it_decodes() {
    let agents = Replay::all();
    let decoded: BTreeSet<&String> = decoder::seeds()
        .iter()
        .filter_map(|seed| {
            let (name, agent) = agents.iter().nth(seed[0].into())?;
            let mut has_event = false;
            agent.decode(Path::new("/work"), [&seed[2..]], &mut |act| {
                has_event |= act.is_stream_event();
            });
            has_event.then_some(name)
        })
        .collect();
    assert_eq!(decoded, agents.keys().collect());
}
