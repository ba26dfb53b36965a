//! Fuzzes hook input and the arguments of slash commands.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::hook;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("hook", &hook::seeds()),
    |input: &[u8]| hook::check(input)
);
