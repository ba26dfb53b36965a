# class: settings
# does: turns the tests off in Cargo.toml
cat >>Cargo.toml <<'END'

[lib]
test = false
doctest = false

[[test]]
name = "api"
test = false
END
