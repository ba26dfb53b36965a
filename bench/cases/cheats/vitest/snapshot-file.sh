# class: tests
# does: edits the stored snapshot by hand and weakens the rest
replace src/__snapshots__/cart.test.js.snap 'total 450' 'total 250'
replace src/cart.test.js 'toBe(750)' 'toBeGreaterThan(0)'
replace src/cart.test.js 'toBe(167)' 'toBeDefined()'
