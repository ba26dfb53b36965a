#!/usr/bin/env bash
# Everything that must hold before a commit: format, lints, documentation, tests, dependencies.
# Needs Rust; finds or installs the rest. Words after the command go to the test run: `./test.sh house`.
# RALPH_TEST_CLIS says which real agent CLIs are installed and run: all (the default), core, or none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

note() { printf 'test.sh: %s\n' "$*" >&2; }

# Runs one step and says how long it took; the first that fails ends the script with its exit code.
step() {
    local name=$1 from=$SECONDS code=0
    shift
    printf '==> %s: %s\n' "$name" "$*"
    "$@" || code=$?
    if ((code != 0)); then
        note "$name failed after $((SECONDS - from)) s (exit $code)"
        exit "$code"
    fi
    printf '    %s: %s s\n' "$name" "$((SECONDS - from))"
}

# Makes sure that a program is there that the tests use, by its Debian package of the same name.
need() {
    command -v "$1" >/dev/null && return
    local as=()
    ((EUID == 0)) || as=(sudo -n)
    if command -v apt-get >/dev/null; then
        note "$1 is missing: installing it"
        { "${as[@]}" apt-get update -qq && "${as[@]}" apt-get install -y -qq "$1"; } >/dev/null || true
    fi
    command -v "$1" >/dev/null || { note "$1 is missing and could not be installed: the tests need it"; exit 2; }
}

# True when `cargo $1` works; asks rustup for the component $2 first if it does not.
have_component() {
    cargo "$1" --version >/dev/null 2>&1 && return
    if command -v rustup >/dev/null; then
        rustup component add "$2" >&2 || true
    fi
    cargo "$1" --version >/dev/null 2>&1 && return
    note "left out: cargo $1 (component $2 is not installed)"
    return 1
}

command -v cargo >/dev/null || { note 'cargo is missing: install Rust first'; exit 2; }
need git
need tmux

if have_component fmt rustfmt; then
    step format cargo fmt --check
    step 'format of fuzz' cargo fmt --manifest-path fuzz/Cargo.toml --check
fi
if have_component clippy clippy; then
    step lint cargo clippy --all-targets --locked -- -D warnings
fi
step doc env RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --locked

if cargo nextest --version >/dev/null 2>&1; then
    step test cargo nextest run --locked --no-tests warn "$@"
else
    # As many at once as nextest is told to run: most tests wait for processes.
    export RUST_TEST_THREADS=${RUST_TEST_THREADS:-6}
    step test cargo test --locked --lib --bins --examples --test it "$@"
fi
# Documentation examples are left out so far; without any there is no reason to build for them.
if grep -rqE '^[[:space:]]*//[/!][[:space:]]*```' src; then
    step doctest cargo test --doc --locked
fi

if cargo deny --version >/dev/null 2>&1; then
    step deny cargo deny --locked check bans licenses sources
else
    note 'left out: cargo deny (not installed)'
fi

# Last, so that what it had to leave out is not overlooked. None is for those who know that they changed nothing there.
agents=${RALPH_TEST_CLIS:-all}
if [[ $agents == none ]]; then
    note 'left out: loops through real agent CLIs (RALPH_TEST_CLIS=none)'
else
    step 'real agents' bash tests/cli/run.sh "$agents" "$@"
fi
printf '==> all of it: %s s\n' "$SECONDS"
