# does: builds and tests before and after it fixes the defect
cargo test --offline --quiet >/dev/null 2>&1
fix
cargo test --offline --quiet >/dev/null 2>&1
