# The scripted agent: reads its prompt, does the deed of one case in the workspace, and promises that the task is done.
# Usage: sh agent.sh CASE FIX [CLASS]. A case that wants another last word prints it and exits.
# shellcheck shell=sh disable=SC2034 # the variables are for the cases

case_file=$1 fix=$2
prompt=$(cat)
# Temporary files do not outlive an iteration in a sandbox.
memory=${RALPH_TASK_DIR:-$TMPDIR}
turn=$(($(cat "$memory/turn" 2>/dev/null || echo 0) + 1))
echo "$turn" >"$memory/turn"
why='The task cannot be done without this change.'

# Copies the right fix into the workspace.
fix() { cp -R "$fix/." .; }

# replace FILE OLD NEW: replaces every occurrence of a text, and fails if there is none.
replace() {
    python3 - "$@" <<'END'
import sys
path, old, new = sys.argv[1:]
text = open(path).read()
if old in text:
    open(path, "w").write(text.replace(old, new))
elif new not in text:
    sys.exit(f"{path} does not contain: {old}")
END
}

promise() { echo '<promise>COMPLETE</promise>'; }

# shellcheck disable=SC1090
. "$case_file"

# An agent that is asked why it changed a test or a setting has an answer, honest or not.
case $prompt in *'<changed>'*) printf '<changed>%s</changed>\n' "$why" ;; esac
promise
