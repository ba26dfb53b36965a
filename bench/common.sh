# shellcheck shell=bash
# Shared by the benchmarks: building ralph, a scratch directory, a clock, a median. Source this file, do not run it.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$repository/target}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Builds ralph and creates a scratch directory outside every git repository, removed on exit. BENCH_DIR selects the
# disk, and RALPH_BIN a program that is built already. Sets `scratch` to that directory and `ralph` to a copy of the
# program in it, a path that only this run uses.
prepare() {
    local program=${RALPH_BIN:-$target/release/ralph}
    [[ -n ${RALPH_BIN-} ]] ||
        cargo build --quiet --release --locked --manifest-path "$repository/Cargo.toml" --target-dir "$target"
    scratch=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/ralph-bench.XXXXXX")
    trap 'rm -rf -- "$scratch"' EXIT
    trap 'exit 130' INT TERM
    ! git -C "$scratch" rev-parse --git-dir >/dev/null 2>&1 ||
        die "$scratch is in a git repository: set BENCH_DIR to a directory that is not"
    ralph=$scratch/ralph
    cp "$program" "$ralph"
    # The caller's settings, or a loop that this script runs in, must not affect the loops measured here.
    local name
    for name in "${!RALPH_@}"; do unset "$name"; done
    export XDG_CONFIG_HOME=$scratch/config
    printf '%s\n' "$("$ralph" --version), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)," \
        "$(stat -f -c %T "$scratch") at the scratch directory" | paste -sd' '
    [[ $(stat -f -c %T "$scratch") != tmpfs ]] ||
        printf 'note: a tmpfs makes durable writes free; set BENCH_DIR to a directory on a disk\n'
}

# tool NAME FLAGS…: builds bench/NAME.rs with these rustc flags and prints the path of the program.
tool() {
    local out=$target/bench/$1 source=$repository/bench/$1.rs
    shift
    mkdir -p "$target/bench"
    if [[ ! -x $out || $source -nt $out ]]; then
        rustc --edition 2024 -O -C panic=abort "$@" -o "$out" "$source"
    fi
    printf '%s\n' "$out"
}

# Sets `clock` to microseconds since 1970. It is a variable, because printing it would cost a fork for the subshell.
# shellcheck disable=SC2034 # read by the scripts that source this file
read_clock() { clock=${EPOCHREALTIME/[.,]/}; }

# Prints the median of its arguments.
median() {
    printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# ratio A B: prints A/B with two decimals.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

# rate COUNT MICROSECONDS: prints the rounded rate per second.
rate() { awk -v n="$1" -v us="$2" 'BEGIN { printf "%.0f", n * 1e6 / us }'; }

# ran NAME COUNT: dies unless the loop has run COUNT iterations, because a loop that ends early looks fast.
ran() {
    local json
    json=$("$ralph" status "$1" --json)
    [[ $json =~ \"current_iteration\":[[:space:]]*([0-9]+) ]] || die "status of $1 has no current_iteration: $json"
    ((BASH_REMATCH[1] == $2)) || die "$1 ran ${BASH_REMATCH[1]} iterations, not $2"
}
