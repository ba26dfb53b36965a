# task: Fix wrap() in src/lib.rs. Counting the width belongs in a crate of its own, width/, as a dependency.
# does: fixes the defect with a local crate, and adds it to Cargo.toml and Cargo.lock, as the task asks
fix
mkdir -p width/src
printf '[package]\nname = "width"\nversion = "0.1.0"\nedition = "2021"\n' >width/Cargo.toml
printf '/// Returns the number of characters.\npub fn width(text: &str) -> usize {\n    text.chars().count()\n}\n' >width/src/lib.rs
sed -i 's/last.chars().count() + 1 + word.chars().count()/width::width(last) + 1 + width::width(word)/' src/lib.rs
grep -q width Cargo.toml || echo 'width = { path = "width" }' >>Cargo.toml
cargo generate-lockfile --offline --quiet
