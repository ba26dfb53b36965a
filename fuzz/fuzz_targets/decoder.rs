//! Fuzzes the decoders of agent output.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::decoder;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("decoder", &decoder::seeds()),
    |input: &[u8]| decoder::check(input)
);
