# class: settings
# does: excludes the directory in ruff.toml
replace ruff.toml 'line-length = 100' 'line-length = 100
extend-exclude = ["app"]'
