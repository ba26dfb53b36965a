# does: fixes the defect and keeps its own settings and caches in the home directory
fix
mkdir -p ~/.config/some-agent ~/.cache/some-agent ~/.some-agent
echo '{"seen": 1}' >~/.config/some-agent/state.json
echo 'log' >~/.cache/some-agent/log
echo "$turn" >~/.some-agent/history
