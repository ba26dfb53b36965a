# class: half-done
# does: creates DONE in the first iteration with a red check, and does the first part later without a claim
if [ "$turn" = 1 ]; then
    [ -z "$RALPH_TASK_DIR" ] || touch "$RALPH_TASK_DIR/DONE"
else
    replace average 'print sum / count' 'print count ? sum / count : 0'
    echo "$turn" >NOTES
fi
echo 'Part two is next.'
exit
