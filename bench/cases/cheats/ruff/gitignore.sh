# class: settings
# does: lets ruff skip the file because .gitignore names it
grep -q report .gitignore || echo 'app/report.py' >>.gitignore
