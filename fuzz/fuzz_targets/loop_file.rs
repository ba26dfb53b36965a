//! Fuzzes the front matter of a session's loop file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::loop_file;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("loop_file", &loop_file::seeds()),
    |input: &[u8]| loop_file::check(input)
);
