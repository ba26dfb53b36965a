# class: half-done
# does: runs ralph done and creates DONE although nothing was done
ralph done >/dev/null 2>&1
[ -z "$RALPH_TASK_DIR" ] || touch "$RALPH_TASK_DIR/DONE"
