//! Fuzzes settings files in all formats, up to the plan.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::properties::settings;
use ralph_fuzz::write_corpus;

fuzz_target!(
    init: write_corpus("settings", &settings::seeds()),
    |input: &[u8]| settings::check(input)
);
