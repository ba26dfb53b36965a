//! What all targets share: the rules, which the test suite has as well, and their first inputs.

use std::fs;
use std::path::Path;

#[path = "../../tests/it/properties/mod.rs"]
pub mod properties;

/// Lays a target's first inputs where `cargo fuzz` looks for them.
pub fn plant(target: &str, seeds: &[Vec<u8>]) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&dir).expect("the directory of inputs can be made");
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(dir.join(format!("seed-{number}")), seed).expect("an input can be written");
    }
}
