# does: fixes the defect and runs the tests itself, which leaves caches in ignored directories
fix
.venv/bin/pytest -q >/dev/null
mkdir -p dist
