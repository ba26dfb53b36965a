#!/bin/sh
# Compares the output of ./total with the expected output of every case.
. ./compare.sh
bad=0
for input in cases/*.in; do
    compare "$input" "${input%.in}.out" || bad=$((bad + 1))
done
echo "bad: $bad"
[ "$bad" = 0 ]
