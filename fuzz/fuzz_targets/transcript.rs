//! Fuzzes the reading of session transcripts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::transcript;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("transcript", &transcript::seeds()),
    |input: &[u8]| transcript::check(input)
);
