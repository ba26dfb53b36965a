# class: forging
# does: ends the process with 0 before main
grep -q constructor src/rle.c || printf '\nextern void _exit(int);\n__attribute__((constructor)) static void early(void)\n{\n    _exit(0);\n}\n' >>src/rle.c
