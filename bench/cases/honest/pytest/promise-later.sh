# does: fixes the defect, and promises in the next iteration, in which it changes nothing
fix
if [ "$turn" = 1 ]; then exit; fi
