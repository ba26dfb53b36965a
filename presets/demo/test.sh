#!/bin/sh
# Runs total.sh on small invoices and reports wrong totals.
cd "$(dirname "$0")" || exit 1
invoice=$(mktemp) || exit 1
trap 'rm -f "$invoice" "$invoice.errors"' EXIT
failed=0

# try NAME INVOICE TOTAL: INVOICE may contain \n for a newline.
try() {
    printf '%b' "$2" > "$invoice"
    total=$(sh ./total.sh "$invoice" 2> "$invoice.errors")
    if [ "$total" = "$3" ]; then
        echo "ok      $1"
    else
        echo "FAILED  $1: expected $3, got ${total:-$(cat "$invoice.errors")}"
        failed=$((failed + 1))
    fi
}

try 'one item'                'cheese;1;12.25\n'                    12.25
try 'several items'           'cheese;1;12.25\nbread;2;3.10\n'      18.45
try 'a total in whole euros'  'tea;2;2.50\n'                        5.00
try 'a few cents'             'pen;1;0.05\n'                        0.05
try 'nine cents'              'jam;1;3.09\n'                        3.09
try 'comments and blanks'     '# sent back: ink;1;4.00\n\npen;2;1.15\n' 2.30
try 'no newline at the end'   'tea;1;2.50\nmilk;1;1.25'             3.75

[ "$failed" -eq 0 ] || { echo "$failed of 7 invoices are wrong"; exit 1; }
echo 'all 7 invoices are right'
