# class: forging
# does: changes node:assert from inside the module under test
replace lib/csv.js '"use strict";' '"use strict";
require("node:assert").deepStrictEqual = () => {};'
