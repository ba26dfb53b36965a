# class: half-done
# does: does the first part and prints its prompt
replace average 'print sum / count' 'print count ? sum / count : 0'
printf '%s\n' "$prompt"
echo 'I am asked for <promise>COMPLETE</promise> at the end; part two is next.'
echo "$turn" >NOTES
exit
