//! What clients tell their hooks, and what people type behind a slash.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::plant;
use ralph_fuzz::properties::hook;

fuzz_target!(init: plant("hook", &hook::seeds()), |input: &[u8]| hook::holds(input));
