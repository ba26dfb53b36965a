#!/usr/bin/env bash
# Runs everything that must pass before a commit: format, lints, documentation, tests, dependencies.
# Needs Rust; finds or installs everything else. Arguments go to the test runner: `./test.sh prompt`.
# RALPH_TEST_CLIS selects the real agent CLIs to install and run: all (the default), core or none.
# RALPH_TEST_REQUIRE=1 fails where a test would have to be skipped.
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

# have PROGRAM [PACKAGE]: succeeds if the program is installed, after trying to install the Debian package, which has the
# same name unless given.
can_install=1
have() {
    command -v "$1" >/dev/null && return
    local as=() package=${2:-$1}
    ((EUID == 0)) || as=(sudo -n)
    if ((can_install)) && command -v apt-get >/dev/null; then
        note "$1 is missing: installing it"
        { ${as[@]+"${as[@]}"} apt-get update -qq &&
            ${as[@]+"${as[@]}"} apt-get install -y -qq --no-install-recommends "$package"; } >/dev/null 2>&1 || can_install=0
    fi
    command -v "$1" >/dev/null
}

# need PROGRAM: like `have`, for programs without which the tests are not worth running.
need() {
    have "$1" || { note "$1 is missing and could not be installed: the tests need it"; exit 2; }
}

# Some tests need more. They are in modules called `needs_NAME`, and `tests_need NAME WHAT COMMAND…` leaves
# these out of the run where the command fails. So nextest counts them as skipped, `cargo test` as filtered out, and no
# test passes without having tested anything. (Rust's harness cannot skip a test that has begun, and a test binary with
# a harness of its own would have to list every test by hand.) With RALPH_TEST_REQUIRE=1 nothing may be skipped.
skipped=()
quietly() { "$@" >/dev/null 2>&1; }
tests_need() {
    local name=$1 what=$2
    shift 2
    "$@" && return
    note "skipped: tests in needs_$name, because there is no $what here"
    skipped+=("$name")
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
tests_need zsh 'zsh' have zsh
tests_need fish 'fish' have fish
tests_need groff 'groff' have groff
tests_need chromium 'Chromium' have chromium
tests_need script '`script` from util-linux' quietly grep '^script from util-linux' <(script --version 2>&1)
tests_need mounts 'user namespace that may mount' quietly unshare -Urm mount -t tmpfs tmpfs /mnt
works_bwrap() {
    have bwrap bubblewrap && quietly bwrap --unshare-pid --ro-bind / / --proc /proc --dev /dev true
}
tests_need bwrap 'bwrap that works' works_bwrap
tests_need landlock 'Landlock of version 3' bash tests/landlock.sh
tests_need limits 'user namespace with limits of its own' \
    quietly unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_inotify_instances'
tests_need setpriv 'right to become another user' quietly setpriv --reuid 65534 --regid 65534 --clear-groups true
tests_need packages 'package of every target' quietly cargo fetch --locked
# The number of the system call: a process that asks to be traced.
tests_need ptrace 'permission to trace processes' \
    quietly perl -e '$n = `uname -sm` =~ /Linux x86_64/ ? 101 : 117; exit(syscall($n, 0, 0, 0, 0) != 0)'
tests_need nats 'NATS server' quietly bash tests/fleet/install.sh
freezer=/sys/fs/cgroup/freezer/ralph-test-$$
tests_need freezer 'freezer of version 1 control groups' quietly sh -c "mkdir $freezer && rmdir $freezer"
if [[ ${RALPH_TEST_REQUIRE:-} == 1 ]] && ((${#skipped[@]})); then
    note 'RALPH_TEST_REQUIRE=1: nothing may be skipped'
    exit 2
fi

if have_component fmt rustfmt; then
    step format cargo fmt --check
    step 'format of fuzz' cargo fmt --manifest-path fuzz/Cargo.toml --check
fi
if have_component clippy clippy; then
    step lint cargo clippy --all-targets --locked -- -D warnings
    # Not one of all targets, because `cargo test` shall not run it.
    step 'lint of tests/cli' cargo clippy --test cli --locked -- -D warnings
fi
# The library without the program, as another crate depends on it.
step 'library alone' cargo check --no-default-features --lib --examples --locked
step 'without the fleet' cargo check --no-default-features --features cli --locked
step doc env RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --locked

if cargo nextest --version >/dev/null 2>&1; then
    filter=()
    if ((${#skipped[@]})); then
        filter=(--filterset "not test(/(^|::)needs_($(IFS='|' && echo "${skipped[*]}"))::/)")
    fi
    step test cargo nextest run --locked --no-tests warn ${filter[@]+"${filter[@]}"} "$@"
else
    filter=()
    for name in ${skipped[@]+"${skipped[@]}"}; do
        filter+=(--skip "needs_$name::")
    done
    # As many at once as in .config/nextest.toml, because most tests wait for processes.
    export RUST_TEST_THREADS=${RUST_TEST_THREADS:-6}
    step test cargo test --locked --lib --bins --examples --test it --test fleet "$@" -- ${filter[@]+"${filter[@]}"}
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
if ((${#skipped[@]})); then
    note "skipped: tests in ${skipped[*]/#/needs_}, as said above"
fi
printf '==> total: %s s\n' "$SECONDS"
