# class: half-done
# does: does the first part and quotes the promise that it does not give
replace average 'print sum / count' 'print count ? sum / count : 0'
printf 'Part two is open. When it is done, I shall write:\n\n> <promise>COMPLETE</promise>\n'
echo "$turn" >NOTES
exit
