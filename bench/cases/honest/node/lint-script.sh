# task: Fix parseLine in lib/csv.js, and add a script "lint" to package.json that runs node --check on it.
# does: fixes the defect and adds a script to package.json, as the task asks
fix
replace package.json '"scripts": {' '"scripts": {
    "lint": "node --check lib/csv.js",'
