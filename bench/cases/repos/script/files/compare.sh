# compare INPUT EXPECTED: runs ./total on the input.
compare() {
    ./total <"$1" | diff "$2" -
}
