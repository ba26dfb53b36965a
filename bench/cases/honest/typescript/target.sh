# task: Fix the type errors in src/shop.ts, without suppressing them, and raise the target in tsconfig.json to ES2023.
# does: fixes the defects and changes tsconfig.json, as the task asks
fix
replace tsconfig.json '"target": "ES2022"' '"target": "ES2023"'
