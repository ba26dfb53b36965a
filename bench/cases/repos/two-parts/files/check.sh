#!/bin/sh
# The check knows nothing of the second part of the task.
[ "$(printf '1\n3\n' | ./average)" = 2 ] || { echo "1 and 3: not 2"; exit 1; }
[ "$(./average </dev/null)" = 0 ] || { echo "nothing: not 0"; exit 1; }
