# Short names for what is done often. `./test.sh` needs no `just`.

set shell := ["bash", "-euo", "pipefail", "-c"]

# List the recipes
default:
    @just --list --unsorted

# Build the program as it is shipped
build:
    cargo build --release --locked

# Make the archive of a release: program, completions, manual pages; docs/releasing.md shows what is in it
dist:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --locked
    ralph=${CARGO_TARGET_DIR:-target}/release/ralph
    name=ralph-$("$ralph" --version | cut -d' ' -f2)-$(rustc -vV | sed -n 's/^host: //p')
    dist=target/dist
    rm -rf "$dist"
    mkdir -p "$dist/$name/completions" "$dist/$name/man/man1"
    cp "$ralph" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$dist/$name"
    for pair in bash:ralph.bash zsh:_ralph fish:ralph.fish elvish:ralph.elv powershell:_ralph.ps1; do
        "$ralph" completions "${pair%%:*}" >"$dist/$name/completions/${pair#*:}"
    done
    "$ralph" man >"$dist/$name/man/man1/ralph.1"
    # The main page lists the pages of the verbs as `ralph\-run(1)`.
    for verb in $("$ralph" man | sed -n 's/^ralph\\-\(.*\)(1)$/\1/p'); do
        "$ralph" man "$verb" >"$dist/$name/man/man1/ralph-$verb.1"
    done
    tar -C "$dist" -czf "$dist/$name.tar.gz" "$name"
    cd "$dist"
    if command -v sha256sum >/dev/null; then sha256sum "$name.tar.gz"; else shasum -a 256 "$name.tar.gz"; fi \
        >"$name.tar.gz.sha256"
    tar -tzf "$name.tar.gz"
    cat "$name.tar.gz.sha256"

# See a loop work, with an agent that needs no account
demo:
    cargo run --quiet --locked -- demo

# Run everything that must hold before a commit
test *ARGS:
    ./test.sh {{ARGS}}

# Format and lint
lint:
    cargo fmt
    cargo clippy --all-targets --locked -- -D warnings
    cargo clippy --test cli --locked -- -D warnings

# Build the documentation of the library
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked --document-private-items

# Check licences, sources, duplicates and known holes of the dependencies
deny:
    cargo deny --locked check

# Ask whether the engine's tests notice each small change to it
mutants *ARGS:
    #!/usr/bin/env bash
    # The engine imports nothing of ralph, so it is a crate by itself: each mutant builds in a second or two.
    set -euo pipefail
    crate=target/mutants-engine
    rm -rf "$crate/src" "$crate/presets"
    mkdir -p "$crate/src"
    cp -r src/engine "$crate/src/engine"
    # For what the engine may embed.
    [ ! -d presets ] || cp -r presets "$crate/presets"
    cp Cargo.lock "$crate/Cargo.lock"
    printf '//! The engine alone, for `just mutants`.\npub mod engine;\n' >"$crate/src/lib.rs"
    cat >"$crate/Cargo.toml" <<'TOML'
    [package]
    name = "ralph"
    version = "0.1.0"
    edition = "2024"
    publish = false

    [dependencies]
    regex = "1"
    serde = { version = "1", features = ["derive"] }
    serde_json = "1"

    [dev-dependencies]
    fastrand = "2"

    [profile.dev]
    debug = false

    [workspace]
    TOML
    cd "$crate"
    # The scratch crate lies in an ignored directory, hence `--gitignore false`.
    exec cargo mutants --gitignore false --no-shuffle --jobs 2 --timeout 30 {{ARGS}}

# Measure one thing: overhead, flood, start, verbs, many, hook
bench NAME:
    ./bench/{{NAME}}
