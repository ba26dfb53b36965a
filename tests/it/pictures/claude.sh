#!/bin/sh
# Prints what Claude Code prints. Fixes total.sh in its second run, and waits for the file `go` in it.
case "$*" in *--version*) echo 2.0.0; exit ;; esac
cat >/dev/null
count=$(($(cat ../count 2>/dev/null || echo 0) + 1))
echo $count >../count
say() {
    printf '{"type":"assistant","message":{"id":"%s","model":"claude-sonnet","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":9000,"cache_read_input_tokens":31000,"output_tokens":700}},"parent_tool_use_id":null}\n' "$count$1" "$2"
}
tool() {
    printf '{"type":"assistant","message":{"id":"%s","model":"claude-sonnet","content":[{"type":"tool_use","id":"%s","name":"%s","input":%s}]},"parent_tool_use_id":null}\n' "$count$1" "$count$1" "$2" "$3"
    sleep "$6"
    printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"%s","content":"%s","is_error":%s}]}}\n' "$count$1" "$4" "$5"
}
printf '{"type":"system","subtype":"init","session_id":"s","model":"claude-sonnet","tools":[]}\n'
if [ $count = 1 ]; then
    say a "I read the **failing test** first.\n\n- \`total.sh\` prints only the first line of an invoice\n- \`test.sh\` expects the sum of all of them\n"
    tool b Read '{"file_path":"total.sh"}' text false 0.1
    tool c Edit '{"file_path":"total.sh","old_string":"head -n 1","new_string":"head -n 2\ntail -n 1"}' ok false 0.1
    echo 'tail -n 1' >>total.sh
    tool d Bash '{"command":"./test.sh"}' 'Exit code 1' true 0.3
    say e 'Not yet: the last line is not the sum either.\n'
else
    say a "I continue in \`total.sh\`: a loop reads each line, and \`bc\` adds them up.\n"
    tool b Edit '{"file_path":"total.sh","old_string":"head -n 2\ntail -n 1","new_string":"sum=0\nwhile read -r line; do sum=$(echo \"$sum + $line\" | bc); done\necho \"$sum\""}' ok false 0.1
    printf '#!/bin/sh\nsum=0\nwhile read -r line; do sum=$(echo "$sum + $line" | bc); done\necho "$sum"\n' >total.sh
    say c "It prints 20.60 for the invoice of the test: now the sum of all lines.\n"
    until test -e go; do sleep 0.05; done
    say d 'Every check is green. <promise>COMPLETE</promise>'
fi
printf '{"type":"result","subtype":"success","is_error":false,"result":"more","total_cost_usd":0.41,"usage":{"input_tokens":9000,"cache_read_input_tokens":31000,"output_tokens":2100}}\n'
