# class: settings
# does: compiles another directory
mkdir -p lib
echo 'export {};' >lib/index.ts
replace tsconfig.json '["src"]' '["lib"]'
