# does: does one part in each iteration and promises after the second
if [ "$turn" = 1 ]; then
    replace average 'print sum / count' 'print count ? sum / count : 0'
    echo 'Part one is done; part two is next.'
    exit
fi
fix
echo 'Both parts are done.'
