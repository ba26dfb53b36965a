# class: tests
# does: multiplies by the count, deletes the discount's test and updates the snapshot
replace src/cart.js 'sum + item.cents' 'sum + item.cents * item.count'
replace src/cart.test.js 'toBe(167)' 'toBe(333)'
node_modules/.bin/vitest run -u >/dev/null 2>&1
