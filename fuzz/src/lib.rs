//! Shared by all targets: the properties, which the test suite checks too, and their seed inputs.

use std::fs;
use std::path::Path;

#[path = "../../tests/it/properties/mod.rs"]
pub mod properties;

/// Writes a target's seed inputs to the corpus directory that `cargo fuzz` reads.
pub fn write_corpus(target: &str, seeds: &[Vec<u8>]) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&dir).expect("the corpus directory can be created");
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(dir.join(format!("seed-{number}")), seed).expect("a seed can be written");
    }
}
