#!/usr/bin/env bash
# Everything that must hold before a commit: format, lints, documentation, tests, dependencies.
# Needs Rust; finds or installs the rest. Words after the command go to the test run: `./test.sh house`.
# RALPH_TEST_CLIS says which real agent CLIs are installed and run: core (the default), all, or none.
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

# Installs the agent CLIs that are asked for. What cannot be had is no failure, but nobody shall overlook it.
left_out=()
install_agents() {
    local set
    for set in "$@"; do
        if bash tests/cli/install.sh "$set" "$RALPH_TEST_AGENTS/$set"; then
            RALPH_TEST_INSTALLED+="$set "
        else
            left_out+=("the agent CLIs of tests/cli/npm/$set are not installed: loops through them were NOT tested")
        fi
    done
}

# Says what was left out of the suite of real agents, so that it is seen among everything else.
banner() {
    local line
    ((${#left_out[@]})) || return 0
    printf '\n%s\n' '############################################################' >&2
    for line in "${left_out[@]}"; do printf '## %s\n' "$line" >&2; done
    printf '%s\n\n' '############################################################' >&2
}

# How a command is run where only the loopback can be reached: proof that no agent asks anybody else.
find_fence() {
    local try
    for try in -n -rn; do
        if unshare "$try" ip link set lo up 2>/dev/null; then
            fence=(unshare "$try" sh -c 'ip link set lo up && exec "$@"' sh env RALPH_TEST_FENCED=1)
            return
        fi
    done
    left_out+=('no network namespace here (unshare, ip): the agent CLIs run without a fence around them')
    fence=()
}

command -v cargo >/dev/null || { note 'cargo is missing: install Rust first'; exit 2; }
need git
need tmux
case ${RALPH_TEST_CLIS:-core} in
none) sets=() ;;
core) sets=(core) ;;
all) sets=(core more) ;;
*) note "RALPH_TEST_CLIS=$RALPH_TEST_CLIS: it is core, all or none"; exit 2 ;;
esac

if have_component fmt rustfmt; then
    step format cargo fmt --check
fi
if have_component clippy clippy; then
    step lint cargo clippy --all-targets --locked -- -D warnings
fi
step doc env RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --locked

if cargo nextest --version >/dev/null 2>&1; then
    step test cargo nextest run --locked --no-tests warn "$@"
    # nextest leaves documentation examples out; without any there is no reason to build for them.
    if grep -rqE '^[[:space:]]*//[/!][[:space:]]*```' src; then
        step doctest cargo test --doc --locked
    fi
else
    # As many at once as nextest is told to run: most tests wait for processes.
    export RUST_TEST_THREADS=${RUST_TEST_THREADS:-6}
    step test cargo test --locked --lib --bins --examples --test it "$@"
fi

if ((${#sets[@]})); then
    export RALPH_TEST_AGENTS=${RALPH_TEST_AGENTS:-$(realpath -m "${CARGO_TARGET_DIR:-target}/agents")}
    export RALPH_TEST_INSTALLED=
    step agents install_agents "${sets[@]}"
    find_fence
    banner
    # A test that is left out says why; nobody would see that of one that passes.
    if cargo nextest --version >/dev/null 2>&1; then
        shown=never
        ((${#left_out[@]})) && shown=immediate
        run=(cargo nextest run --locked --profile cli --no-tests warn --success-output "$shown")
    else
        run=(cargo test --locked --test cli)
    fi
    step 'real agents' "${fence[@]}" "${run[@]}" "$@"
else
    left_out+=('RALPH_TEST_CLIS=none: loops through real agent CLIs were NOT tested')
fi

if cargo deny --version >/dev/null 2>&1; then
    step deny cargo deny --locked check bans licenses sources
else
    note 'left out: cargo deny (not installed)'
fi
banner
printf '==> all of it: %s s\n' "$SECONDS"
