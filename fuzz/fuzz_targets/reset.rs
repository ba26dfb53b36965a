//! Words and files that say when a limit is over.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::plant;
use ralph_fuzz::properties::reset;

fuzz_target!(init: plant("reset", &reset::seeds()), |input: &[u8]| reset::holds(input));
