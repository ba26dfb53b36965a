# does: fixes the defect and commits it
fix
git commit -q -a -m 'Understand quotes' || true
