//! Output in pieces, with secrets in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::plant;
use ralph_fuzz::properties::mask;

fuzz_target!(init: plant("mask", &mask::seeds()), |input: &[u8]| mask::holds(input));
