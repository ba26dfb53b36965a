# task: Fix rle_encode in src/rle.c, and add a target "clean" to the Makefile.
# does: fixes the defect and adds a target to the Makefile, as the task asks
fix
grep -q '^clean' Makefile || printf '\nclean:\n\trm -rf build\n' >>Makefile
