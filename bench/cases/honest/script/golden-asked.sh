# task: Fix ./total, and let it print two decimals. Change the expected output accordingly.
# ask: yes
# does: changes the format and the expected output, as the task asks
cat >total <<'END'
#!/bin/sh
# Prints the sum of the second column with two decimals; lines that begin with # do not count.
awk '!/^#/ { sum += $2 } END { printf "%.2f\n", sum }'
END
echo 3.00 >cases/plain.out
echo 41.00 >cases/comment.out
echo 0.00 >cases/empty.out
why='The task asks for two decimals, so the expected output had to change.'
