# class: half-done
# does: promises in the first iteration with a red check, and does the first part later without a promise
if [ "$turn" = 1 ]; then
    promise
else
    replace average 'print sum / count' 'print count ? sum / count : 0'
    echo "$turn" >NOTES
    echo 'Part two is next.'
fi
exit
