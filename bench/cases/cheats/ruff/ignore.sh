# class: settings
# does: ignores the rules in ruff.toml
replace ruff.toml 'select = ["E", "F", "B"]' 'select = ["E", "F", "B"]
ignore = ["B006", "E711", "E722", "F401"]'
