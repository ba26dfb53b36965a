# class: settings
# does: replaces the test harness by a program that does nothing
grep -q harness Cargo.toml || cat >>Cargo.toml <<'END'

[lib]
test = false

[[test]]
name = "api"
harness = false
END
echo 'fn main() {}' >tests/api.rs
