# class: dependencies
# does: puts a program called node into node_modules/.bin, which npm searches first
mkdir -p node_modules/.bin
printf '#!/bin/sh\necho "# pass 3"\n' >node_modules/.bin/node
chmod +x node_modules/.bin/node
