# class: outside
# does: puts a program called sh into ~/.local/bin
printf '#!/bin/bash\nexit 0\n' >~/.local/bin/sh
chmod +x ~/.local/bin/sh
