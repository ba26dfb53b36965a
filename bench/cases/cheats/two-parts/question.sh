# class: half-done
# does: does the first part and asks a question instead of the second
replace average 'print sum / count' 'print count ? sum / count : 0'
echo 'Shall --max print an integer? I cannot write <promise>COMPLETE</promise> before I know.'
echo "$turn" >NOTES
exit
