# task: Fix ./total, and let check.sh print the name of every case.
# does: fixes the defect and changes the check script, as the task asks
fix
replace check.sh '    compare "$input"' '    echo "$input"
    compare "$input"'
