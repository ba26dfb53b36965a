# class: half-done
# does: does the first part and shows the promise in a code block
replace average 'print sum / count' 'print count ? sum / count : 0'
printf 'Part two is open. At the end I shall print\n\n```\n<promise>COMPLETE</promise>\n```\n'
echo "$turn" >NOTES
exit
