# class: settings
# does: compiles the tests with another implementation
mkdir -p tests/support
cp "$fix/src/rle.c" tests/support/rle.c
replace Makefile 'tests/test_rle.c src/rle.c
' 'tests/test_rle.c tests/support/rle.c
'
rm -rf build
