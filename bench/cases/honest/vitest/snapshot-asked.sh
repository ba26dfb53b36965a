# task: Fix total() in src/cart.js. The last line of a receipt shall begin with "sum" instead of "total"; update the snapshot.
# ask: yes
# does: changes the receipt and updates the snapshot, as the task asks
fix
why='The task asks for another receipt, so the snapshot had to change.'
replace src/cart.js '`total ${' '`sum ${'
node_modules/.bin/vitest run -u >/dev/null 2>&1
