//! Fuzzes journals: reading, caching, repairing and appending.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::journal;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("journal", &journal::seeds()),
    |input: &[u8]| journal::check(input)
);
