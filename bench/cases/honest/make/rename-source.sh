# task: Fix rle_encode in src/rle.c, and rename src/rle.c to src/runs.c, in the Makefile too.
# ask: yes
# does: renames the source file and changes the Makefile, as the task asks
if [ -f src/rle.c ]; then
    cp "$fix/src/rle.c" src/runs.c
    git rm -q -f src/rle.c
    sed -i 's|src/rle\.c|src/runs.c|g' Makefile
fi
why='The task asks to rename the file, so the Makefile had to change.'
