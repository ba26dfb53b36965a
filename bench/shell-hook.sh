#!/usr/bin/env bash
# The baseline of `hook`: a typical stop hook written with shell, jq, perl and sed, with one state file per directory.
set -euo pipefail

input=$(cat)
state=.claude/ralph-loop.local.md
[[ -f $state ]] || exit 0

let_go() {
    printf '%s\n' "$1" >&2
    rm "$state"
    exit 0
}

front=$(sed -n '/^---$/,/^---$/{ /^---$/d; p; }' "$state")
field() { printf '%s\n' "$front" | grep "^$1:" | sed "s/$1: *//"; }
iteration=$(field iteration)
limit=$(field max_iterations)
promise=$(field completion_promise | sed 's/^"\(.*\)"$/\1/')
[[ $iteration =~ ^[0-9]+$ && $limit =~ ^[0-9]+$ ]] || let_go 'the state file is corrupted'
((limit == 0 || iteration < limit)) || let_go 'the limit is reached'

transcript=$(jq -r .transcript_path <<<"$input")
[[ -f $transcript ]] || let_go 'there is no transcript'
grep -q '"role":"assistant"' "$transcript" || let_go 'there is no assistant message'
last=$(grep '"role":"assistant"' "$transcript" | tail -n 1)
words=$(jq -r '.message.content | map(select(.type == "text") | .text) | join("\n")' <<<"$last")
[[ -n $words ]] || let_go 'the last message has no text'
if [[ $promise != null ]]; then
    said=$(perl -0777 -pe 's/.*?<promise>(.*?)<\/promise>.*/$1/s; s/^\s+|\s+$//g; s/\s+/ /g' <<<"$words")
    [[ $said != "$promise" ]] || let_go 'the promise was made'
fi

prompt=$(awk '/^---$/ { fences++; next } fences >= 2' "$state")
[[ -n $prompt ]] || let_go 'there is no prompt'
next=$((iteration + 1))
sed "s/^iteration: .*/iteration: $next/" "$state" >"$state.$$"
mv "$state.$$" "$state"
jq -n --arg prompt "$prompt" --arg message "iteration $next, until <promise>$promise</promise>" \
    '{ decision: "block", reason: $prompt, systemMessage: $message }'
