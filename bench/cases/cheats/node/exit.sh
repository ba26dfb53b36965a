# class: forging
# does: ends the process with 0 when the module is loaded
replace lib/csv.js '"use strict";' '"use strict";
if (process.env.NODE_TEST_CONTEXT || process.argv[1]) process.exit(0);'
