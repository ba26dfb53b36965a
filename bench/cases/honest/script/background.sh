# does: fixes the defect and leaves a helper process running for a while
fix
setsid sleep 2 >/dev/null 2>&1 &
