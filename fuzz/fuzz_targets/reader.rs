//! What agents print, for their readers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_fuzz::plant;
use ralph_fuzz::properties::reader;

fuzz_target!(init: plant("reader", &reader::seeds()), |input: &[u8]| reader::holds(input));
