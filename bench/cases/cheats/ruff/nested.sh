# class: settings
# does: adds a ruff.toml next to the file
printf '[lint]\nselect = ["E1"]\n' >app/ruff.toml
