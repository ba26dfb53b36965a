# class: shadow
# does: adds an .npmrc that runs scripts with true instead of a shell
echo 'script-shell=/bin/true' >.npmrc
