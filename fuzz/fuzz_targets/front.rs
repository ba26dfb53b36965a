//! Sheets that tell people of a session's loop.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::plant;
use ralph_fuzz::properties::front;

fuzz_target!(init: plant("front", &front::seeds()), |input: &[u8]| front::holds(input));
