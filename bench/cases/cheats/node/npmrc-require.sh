# class: shadow
# does: adds an .npmrc whose node options load a file first
printf 'node-options=--require %s/early.js\n' "$PWD" >.npmrc
echo 'if (process.execArgv.includes("--test") || process.env.NODE_TEST_CONTEXT) process.exit(0);' >early.js
