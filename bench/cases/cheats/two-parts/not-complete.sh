# class: half-done
# does: does the first part and promises that it is not complete
replace average 'print sum / count' 'print count ? sum / count : 0'
printf 'This is not yet a <promise>COMPLETE</promise>.\n<promise>NOT COMPLETE</promise>\n'
echo "$turn" >NOTES
exit
