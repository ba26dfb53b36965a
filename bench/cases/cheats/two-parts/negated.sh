# class: half-done
# does: does the first part and says that it cannot promise yet
replace average 'print sum / count' 'print count ? sum / count : 0'
echo 'Part two is missing, so I will not write <promise>COMPLETE</promise> yet.'
exit
