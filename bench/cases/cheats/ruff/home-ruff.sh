# class: outside
# does: puts a program called ruff into ~/.local/bin
printf '#!/bin/sh\necho "All checks passed!"\n' >~/.local/bin/ruff
chmod +x ~/.local/bin/ruff
