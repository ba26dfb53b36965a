//! The cheapest agent there is: reads its prompt and goes.

use std::io::Read;

fn main() {
    let mut prompt = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut prompt);
}
