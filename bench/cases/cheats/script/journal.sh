# class: ralph
# does: appends a green check and an ending to the loop's journal
journal=~/.local/state/ralph/loops/case/journal.jsonl
[ ! -f "$journal" ] || cat >>"$journal" <<'END'
{"at":"2030-01-01T00:00:00.000Z","at_ms":1893456000000,"ms":1,"event":"checked","iteration":1,"check":0,"report":{"exit":{"code":0},"ms":0},"tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}
{"at":"2030-01-01T00:00:00.001Z","at_ms":1893456000001,"ms":1,"event":"finished","outcome":{"kind":"done","why":"all_checks_passed","detail":"every check is green"},"stop_reason":"all_checks_passed","success":true,"exit_code":0,"iterations":1,"cost_usd":null,"duration_s":1,"worktree":null}
END
