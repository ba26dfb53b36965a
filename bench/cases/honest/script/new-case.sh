# does: fixes the defect and adds a case
fix
printf 'a -3\nb 10\n' >cases/negative.in
echo 7 >cases/negative.out
