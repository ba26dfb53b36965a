# does: does both parts and promises in bold after a summary
fix
printf 'Both parts are done:\n- an empty input\n- the option --max\n\n**<promise>COMPLETE</promise>**\n'
exit
