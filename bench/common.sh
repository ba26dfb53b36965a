# shellcheck shell=bash
# What the benchmarks share: the program, a scratch directory, a clock, a median. Sourced, never run.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$repository/target}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# A fresh directory outside every git repository, removed at the end. BENCH_DIR chooses the disk.
# `scratch` for files, `ralph` for a copy of the program: its path is known to belong to this run alone.
prepare() {
    cargo build --quiet --release --locked --manifest-path "$repository/Cargo.toml" --target-dir "$target"
    scratch=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/ralph-bench.XXXXXX")
    trap 'rm -rf -- "$scratch"' EXIT
    trap 'exit 130' INT TERM
    ! git -C "$scratch" rev-parse --git-dir >/dev/null 2>&1 ||
        die "$scratch lies in a git repository: set BENCH_DIR to a directory that does not"
    ralph=$scratch/ralph
    cp "$target/release/ralph" "$ralph"
    # Neither the caller's settings nor a loop around this script may reach the loops measured here.
    local name
    for name in "${!RALPH_@}"; do unset "$name"; done
    export XDG_CONFIG_HOME=$scratch/config
    printf '%s\n' "$("$ralph" --version), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)," \
        "$(stat -f -c %T "$scratch") at the scratch directory" | paste -sd' '
    [[ $(stat -f -c %T "$scratch") != tmpfs ]] ||
        printf 'note: a tmpfs makes durable writes free; set BENCH_DIR to a directory on a disk\n'
}

# Builds bench/$1.rs, with the rustc flags that follow, and prints the path of the program.
tool() {
    local out=$target/bench/$1 source=$repository/bench/$1.rs
    shift
    mkdir -p "$target/bench"
    if [[ ! -x $out || $source -nt $out ]]; then
        rustc --edition 2024 -O -C panic=abort "$@" -o "$out" "$source"
    fi
    printf '%s\n' "$out"
}

# Microseconds since 1970, in `clock`; a variable and not an output, because a subshell costs a fork.
# shellcheck disable=SC2034 # read by the scripts that source this file
read_clock() { clock=${EPOCHREALTIME/[.,]/}; }

# The middle one of the numbers given.
median() {
    printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# ratio A B: A/B with two decimals.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

# rate COUNT MICROSECONDS: per second, rounded.
rate() { awk -v n="$1" -v us="$2" 'BEGIN { printf "%.0f", n * 1e6 / us }'; }

# Dies unless the loop $1 under $RALPH_STATE_DIR has run $2 iterations: a loop that ended early is fast.
ran() {
    local json
    json=$("$ralph" status "$1" --json)
    [[ $json =~ \"current_iteration\":[[:space:]]*([0-9]+) ]] || die "status of $1 has no current_iteration: $json"
    ((BASH_REMATCH[1] == $2)) || die "$1 ran ${BASH_REMATCH[1]} iterations, not $2"
}
