//! Fuzzes the parsing of reset times in messages and files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::reset_time;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("reset_time", &reset_time::seeds()),
    |input: &[u8]| reset_time::check(input)
);
