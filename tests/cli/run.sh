#!/usr/bin/env bash
# Whole loops through real agent CLIs: `run.sh core|all [WORD …]` installs them, puts up a fence around them and runs
# the tests whose names hold the words. Tests of what cannot be installed are skipped, which is no failure, but is said
# loudly; with RALPH_TEST_REQUIRE=1 it is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# Modules of the tests that need the second set of packages.
more=(copilot droid gemini opencode pi qwen)
skipped=()
case ${1:-} in
core)
    sets=(core)
    skipped+=("${more[@]}")
    printf 'run.sh: claude and codex alone, without %s\n' "${more[*]}"
    ;;
all) sets=(core more) ;;
*) printf 'run.sh: which CLIs? core or all, and not "%s"\n' "${1:-}" >&2; exit 2 ;;
esac
shift

agents=${RALPH_TEST_AGENTS:-${CARGO_TARGET_DIR:-target}/agents}
mkdir -p "$agents"
RALPH_TEST_AGENTS=$(cd "$agents" && pwd)
export RALPH_TEST_AGENTS
missing=()
for set in "${sets[@]}"; do
    if ! bash tests/cli/install.sh "$set" "$RALPH_TEST_AGENTS/$set"; then
        missing+=("the agent CLIs of tests/cli/npm/$set are not installed: their tests are SKIPPED")
        skipped+=("${more[@]}")
        # Without the first set there is little to run, and the second would not install either.
        [[ $set == more ]] || break
    fi
done

# Where only the loopback can be reached, no agent asks anybody else.
fence=()
for how in -n -rn; do
    if unshare "$how" ip link set lo up 2>/dev/null; then
        fence=(unshare "$how" sh -c 'ip link set lo up && exec "$@"' sh)
        break
    fi
done
if ((${#fence[@]} == 0)); then
    missing+=('no network namespace here (unshare and ip make one): the agents are NOT fenced in')
    skipped+=(needs_fence)
fi

# The same sandboxes as in test.sh.
if ! bwrap --unshare-pid --ro-bind / / --proc /proc --dev /dev true 2>/dev/null; then
    missing+=('bwrap does not work here: the tests of --sandbox are SKIPPED')
    skipped+=(needs_bwrap)
elif [[ $PWD/ == /tmp/* || $PWD/ == "${TMPDIR:-/tmp}"/* ]]; then
    # In the sandbox, the directory of temporary files is another one.
    missing+=('the agents are installed in a directory of temporary files: the tests of --sandbox are SKIPPED')
    skipped+=(needs_bwrap)
fi
if ! bash tests/landlock.sh; then
    missing+=('no Landlock here: the tests of --sandbox=landlock are SKIPPED')
    skipped+=(needs_landlock)
fi

banner() {
    ((${#missing[@]})) || return 0
    printf '\n################################################################\n' >&2
    printf '## %s\n' "${missing[@]}" >&2
    printf '################################################################\n\n' >&2
}

banner
if [[ ${RALPH_TEST_REQUIRE:-} == 1 ]] && ((${#missing[@]})); then
    exit 2
fi
[[ -f $RALPH_TEST_AGENTS/core/installed.json ]] || exit 0
filter=()
if cargo nextest --version >/dev/null 2>&1; then
    if ((${#skipped[@]})); then
        filter=(--filterset "not test(/(^|::)($(IFS='|' && echo "${skipped[*]}"))::/)")
    fi
    cargo nextest run --locked --profile cli --test cli --no-run
    ${fence[@]+"${fence[@]}"} cargo nextest run --locked --offline --profile cli --test cli --no-tests warn \
        ${filter[@]+"${filter[@]}"} "$@"
else
    for name in ${skipped[@]+"${skipped[@]}"}; do
        filter+=(--skip "$name::")
    done
    cargo test --locked --test cli --no-run
    ${fence[@]+"${fence[@]}"} cargo test --locked --offline --test cli "$@" -- ${filter[@]+"${filter[@]}"}
fi
banner
