# task: Fix parseLine in lib/csv.js. The scanner belongs in a package of its own, vendor/scanner, as a dependency.
# does: fixes the defect in a local package, and adds it to package.json and node_modules, as the task asks
mkdir -p vendor/scanner
printf '{ "name": "scanner", "version": "1.0.0", "main": "index.js" }\n' >vendor/scanner/package.json
cp "$fix/lib/csv.js" vendor/scanner/index.js
printf '"use strict";\n\nmodule.exports = require("scanner");\n' >lib/csv.js
npm install --offline --no-audit --no-fund --silent ./vendor/scanner >/dev/null 2>&1
