//! The rules for any bytes hold for what is known, and for a bounded number of changes to it. `fuzz/` looks further.

use crate::properties::{front, hook, mask, reader, reset, tail};
use ralph::testing::Replay;
use std::collections::BTreeSet;
use std::path::Path;

/// A rule, its first inputs, and how many changes to each are tried.
type Rule = (fn(&[u8]), Vec<Vec<u8>>, usize);

fn rules() -> [Rule; 6] {
    [
        (reader::holds, reader::seeds(), 2),
        (reset::holds, reset::seeds(), 200),
        (mask::holds, mask::seeds(), 500),
        (hook::holds, hook::seeds(), 200),
        (front::holds, front::seeds(), 500),
        (tail::holds, tail::seeds(), 100),
    ]
}

/// Changes a few bytes, takes some out, or puts some of another input in.
fn changed(input: &[u8], other: &[u8], dice: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..dice.usize(1..4) {
        let (from, length) = (dice.usize(0..=bytes.len()), dice.usize(0..8));
        let to = (from + length).min(bytes.len());
        match dice.u8(0..3) {
            0 => bytes[from..to]
                .iter_mut()
                .for_each(|byte| *byte = dice.u8(..)),
            1 => drop(bytes.drain(from..to)),
            _ => {
                let at = dice.usize(0..=other.len());
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
fn what_holds_for_any_bytes_holds_for_these() {
    let mut dice = fastrand::Rng::with_seed(13);
    for (holds, seeds, rounds) in rules() {
        for seed in &seeds {
            holds(seed);
            for _ in 0..rounds {
                let other = &seeds[dice.usize(0..seeds.len())];
                holds(&changed(seed, other, &mut dice));
            }
        }
    }
}

#[test]
fn every_reader_has_an_input_that_it_understands() {
    let agents = Replay::all();
    let understood: BTreeSet<&String> = reader::seeds()
        .iter()
        .filter_map(|seed| {
            let (name, agent) = agents.iter().nth(seed[0].into())?;
            let mut spoke = false;
            agent.read(Path::new("/work"), [&seed[2..]], &mut |act| {
                spoke |= act.is_event()
            });
            spoke.then_some(name)
        })
        .collect();
    assert_eq!(understood, agents.keys().collect());
}
