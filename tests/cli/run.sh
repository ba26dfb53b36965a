#!/usr/bin/env bash
# Whole loops through real agent CLIs: `run.sh core|all [WORD …]` installs them, puts up a fence around them and runs
# the tests whose names hold the words. What cannot be had is left out, which is no failure, but is said loudly.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case ${1:-} in
core)
    sets=(core)
    printf 'run.sh: claude and codex alone, without copilot, droid, gemini, opencode, pi and qwen\n'
    ;;
all) sets=(core more) ;;
*) printf 'run.sh: which CLIs? core or all, and not "%s"\n' "${1:-}" >&2; exit 2 ;;
esac
shift

agents=${RALPH_TEST_AGENTS:-${CARGO_TARGET_DIR:-target}/agents}
mkdir -p "$agents"
RALPH_TEST_AGENTS=$(cd "$agents" && pwd)
export RALPH_TEST_AGENTS
export RALPH_TEST_INSTALLED=
left_out=()
for set in "${sets[@]}"; do
    if bash tests/cli/install.sh "$set" "$RALPH_TEST_AGENTS/$set"; then
        RALPH_TEST_INSTALLED+="$set "
    else
        left_out+=("the agent CLIs of tests/cli/npm/$set are not installed: loops through them are NOT tested")
    fi
done

# Where only the loopback can be reached, no agent asks anybody else.
fence=()
for how in -n -rn; do
    if unshare "$how" ip link set lo up 2>/dev/null; then
        fence=(unshare "$how" sh -c 'ip link set lo up && exec "$@"' sh env RALPH_TEST_FENCED=1)
        break
    fi
done
((${#fence[@]})) || left_out+=('no network namespace here (unshare and ip make one): the agents are NOT fenced in')

banner() {
    ((${#left_out[@]})) || return 0
    printf '\n################################################################\n' >&2
    printf '## %s\n' "${left_out[@]}" >&2
    printf '################################################################\n\n' >&2
}

banner
if cargo nextest --version >/dev/null 2>&1; then
    # A test that is left out says why; of one that passes nobody would see it.
    shown=never
    ((${#left_out[@]} == 0)) || shown=immediate
    cargo nextest run --locked --profile cli --no-run
    ${fence[@]+"${fence[@]}"} cargo nextest run --locked --offline --profile cli --no-tests warn --success-output "$shown" "$@"
else
    cargo test --locked --test cli --no-run
    ${fence[@]+"${fence[@]}"} cargo test --locked --offline --test cli "$@"
fi
banner
