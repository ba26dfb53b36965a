//! Fuzzes the redaction of secrets in output that arrives in pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::redaction;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("redaction", &redaction::seeds()),
    |input: &[u8]| redaction::check(input)
);
