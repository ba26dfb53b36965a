//! Transcripts of sessions.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::plant;
use ralph_fuzz::properties::tail;

fuzz_target!(init: plant("tail", &tail::seeds()), |input: &[u8]| tail::holds(input));
