# Shortcuts for common tasks. `./test.sh` works without `just`.

set shell := ["bash", "-euo", "pipefail", "-c"]

# List the recipes
default:
    @just --list --unsorted

# Build the release binary
build:
    cargo build --release --locked

# Build a release archive with the program, completions and manual pages (see docs/releasing.md)
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
    # The main page lists the pages of the subcommands as `ralph\-run(1)`.
    for verb in $("$ralph" man | sed -n 's/^ralph\\-\(.*\)(1)$/\1/p'); do
        "$ralph" man "$verb" >"$dist/$name/man/man1/ralph-$verb.1"
    done
    tar -C "$dist" -czf "$dist/$name.tar.gz" "$name"
    cd "$dist"
    if command -v sha256sum >/dev/null; then sha256sum "$name.tar.gz"; else shasum -a 256 "$name.tar.gz"; fi \
        >"$name.tar.gz.sha256"
    tar -tzf "$name.tar.gz"
    cat "$name.tar.gz.sha256"

# Run the demo, a loop with an agent that needs no account
demo:
    cargo run --quiet --locked -- demo

# Run everything that must pass before a commit
test *ARGS:
    ./test.sh {{ARGS}}

# Format and lint
lint:
    cargo fmt
    cargo clippy --all-targets --locked -- -D warnings
    cargo clippy --test cli --locked -- -D warnings

# Build the library documentation
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked --document-private-items

# Check the dependencies' licences, sources, duplicates and security advisories
deny:
    cargo deny --locked check

# Check that the engine's tests catch small mutations of it
mutants *ARGS:
    #!/usr/bin/env bash
    # The engine imports nothing else from ralph, so it builds as a separate crate, in a second or two per mutant.
    set -euo pipefail
    crate=target/mutants-engine
    rm -rf "$crate/src" "$crate/presets"
    mkdir -p "$crate/src"
    cp -r src/engine "$crate/src/engine"
    # The engine embeds some of the presets.
    [ ! -d presets ] || cp -r presets "$crate/presets"
    cp Cargo.lock "$crate/Cargo.lock"
    printf '//! The engine alone, for `just mutants`.\npub mod engine;\n' >"$crate/src/lib.rs"
    cat >"$crate/Cargo.toml" <<'TOML'
    [package]
    name = "ralph"
    version = "0.2.0"
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
    # The scratch crate is in an ignored directory, hence `--gitignore false`.
    exec cargo mutants --gitignore false --no-shuffle --jobs 2 --timeout 30 {{ARGS}}

# Run one benchmark: overhead, flood, start, verbs, many, hook, view, checkpoints, look, fooled
bench NAME:
    ./bench/{{NAME}}

# Kill, fill, break and tamper for hours: RALPH_CHAOS=1000 just chaos
chaos *ARGS:
    cargo nextest run --locked --no-fail-fast --profile chaos campaign chaos:: crash::daemons {{ARGS}}

# Draw the pictures in README.md again; needs Chromium and tmux
pictures:
    cargo nextest run --locked --run-ignored only pictures::
