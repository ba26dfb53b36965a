# task: Fix total() in src/cart.js. Move the tests and their snapshots to test/, and adapt vitest.config.js.
# does: fixes the defect, moves the tests and changes the settings, as the task asks
fix
if [ -f src/cart.test.js ]; then
    mkdir -p test
    git mv src/cart.test.js src/__snapshots__ test/
    replace test/cart.test.js './cart.js' '../src/cart.js'
    replace vitest.config.js 'src/**' 'test/**'
fi
