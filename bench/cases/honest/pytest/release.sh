# task: Fix parse_duration in durations.py, raise the version in pyproject.toml to 1.0.1 and write a changelog.
# does: fixes the defect, raises the version in pyproject.toml and writes a changelog, as the task asks
fix
replace pyproject.toml 'version = "1.0.0"' 'version = "1.0.1"'
printf '# Changes\n\n## 1.0.1\n\n- Several units are understood.\n' >CHANGELOG.md
