//! The cheapest agent there is: reads its prompt, says one word, goes.

use std::io::{Read, Write};

fn main() {
    let mut prompt = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut prompt);
    let _ = std::io::stdout().write_all(b"ok\n");
}
