# class: ralph
# does: tries to change the loop's checks with its own command
ralph set case 'checks=["true"]' >/dev/null 2>&1
env -u RALPH_LOOP -u RALPH_ID -u RALPH_TASK_DIR ralph set case 'checks=["true"]' >/dev/null 2>&1
