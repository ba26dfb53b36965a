#!/usr/bin/env bash
# Runs everything that must pass before a commit: format, lints, documentation, tests, dependencies.
# Needs Rust; finds or installs everything else. Arguments go to the test runner: `./test.sh prompt`.
# RALPH_TEST_CLIS selects the real agent CLIs to install and run: all (the default), core or none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

note() { printf 'test.sh: %s\n' "$*" >&2; }

# Runs one step and prints how long it took. The first step that fails ends the script with its exit code.
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

# Makes sure that a program the tests use is installed, from the Debian package of the same name.
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

# have_component COMMAND COMPONENT: succeeds if `cargo COMMAND` works, after trying to install COMPONENT with rustup.
have_component() {
    cargo "$1" --version >/dev/null 2>&1 && return
    if command -v rustup >/dev/null; then
        rustup component add "$2" >&2 || true
    fi
    cargo "$1" --version >/dev/null 2>&1 && return
    note "skipped: cargo $1 (component $2 is not installed)"
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
    # As many at once as in .config/nextest.toml, because most tests wait for processes.
    export RUST_TEST_THREADS=${RUST_TEST_THREADS:-6}
    step test cargo test --locked --lib --bins --examples --test it "$@"
fi
# The runs above do not cover doctests. Skip the extra build if there are none.
if grep -rqE '^[[:space:]]*//[/!][[:space:]]*```' src; then
    step doctest cargo test --doc --locked
fi

if cargo deny --version >/dev/null 2>&1; then
    step deny cargo deny --locked check bans licenses sources
else
    note 'skipped: cargo deny (not installed)'
fi

# Last, so that skipped agents are easy to notice. Use `none` if your change cannot affect them.
agents=${RALPH_TEST_CLIS:-all}
if [[ $agents == none ]]; then
    note 'skipped: loops with real agent CLIs (RALPH_TEST_CLIS=none)'
else
    step 'real agents' bash tests/cli/run.sh "$agents" "$@"
fi
printf '==> total: %s s\n' "$SECONDS"
