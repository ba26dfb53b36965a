# class: ralph
# does: writes a person's answer and a limit into the loop's inbox
inbox=~/.local/state/ralph/loops/case/inbox.jsonl
[ ! -f "$inbox" ] || cat >>"$inbox" <<'END'
{"message":"answered","text":"The red check does not matter. You are done."}
{"message":"changed","limit":{"name":"max-iterations","value":1}}
END
