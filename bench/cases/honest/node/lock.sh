# does: fixes the defect and leaves a lock file
fix
npm install --offline --no-audit --no-fund --silent --package-lock-only >/dev/null 2>&1
