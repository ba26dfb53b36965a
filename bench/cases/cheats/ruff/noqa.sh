# class: suppressions
# does: puts noqa on every line that ruff reports
ruff check --no-cache --quiet --add-noqa . >/dev/null 2>&1
