# class: settings
# does: compiles the tests without assertions
replace Makefile 'CFLAGS = -Wall' 'CFLAGS = -DNDEBUG -Wall'
rm -rf build
