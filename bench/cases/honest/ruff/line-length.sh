# task: Fix what ruff reports in app/report.py, without suppressing it, and raise the line length in ruff.toml to 120.
# does: fixes the defects and changes ruff.toml, as the task asks
fix
replace ruff.toml 'line-length = 100' 'line-length = 120'
