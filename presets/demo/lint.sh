#!/bin/sh
# Finds what a reviewer would reject: syntax errors, leftover debug lines, overlong lines.
cd "$(dirname "$0")" || exit 1
sh -n total.sh || exit 1
if grep -n 'debug' total.sh; then
    echo 'lint: the lines above are left over from debugging'
    exit 1
fi
if grep -n '.\{81,\}' total.sh; then
    echo 'lint: the lines above have more than 80 characters'
    exit 1
fi
echo 'lint: clean'
