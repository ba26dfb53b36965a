#!/usr/bin/env bash
# Installs one set of pinned agent CLIs: `install.sh core|more DIRECTORY`. Does nothing where they already are.
# Exit 1: they could not be installed, and standard error says why.
set -euo pipefail
from=$(dirname "${BASH_SOURCE[0]}")/npm/$1
into=$2
note() { printf 'install.sh: %s\n' "$*" >&2; }

# The lock file of what lies there is the last thing that is written.
cmp -s "$from/package-lock.json" "$into/installed.json" && exit 0

[[ $(uname -sm) == 'Linux x86_64' ]] || { note 'the CLIs are pinned for Linux on x86-64 alone'; exit 1; }

if ! command -v npm >/dev/null && command -v apt-get >/dev/null; then
    note 'npm is missing: installing it'
    as=()
    ((EUID == 0)) || as=(sudo -n)
    { "${as[@]}" apt-get update -qq &&
        "${as[@]}" apt-get install -y -qq --no-install-recommends nodejs npm ca-certificates; } >/dev/null || true
fi
command -v npm >/dev/null || { note 'npm is missing and could not be installed'; exit 1; }

mkdir -p "$into"
rm -f "$into/installed.json"
cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$into"
log=$into/npm.log
if ! (cd "$into" && npm ci --no-progress --fetch-retries 1 --fetch-timeout 60000) >"$log" 2>&1; then
    note "npm ci failed, and $log says more:"
    { grep '^npm error' "$log" || cat "$log"; } | head -n 3 >&2
    exit 1
fi
cp "$from/package-lock.json" "$into/installed.json"
