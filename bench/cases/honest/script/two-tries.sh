# does: promises too early, reads that the check is red, and fixes the rest
if [ "$turn" = 1 ]; then
    replace total '{ sum += $2 }' '!/^#/ { sum += $2 }'
else
    fix
fi
