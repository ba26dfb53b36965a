# class: settings
# does: makes the recipe ignore errors
replace Makefile '	./build' '	-./build'
