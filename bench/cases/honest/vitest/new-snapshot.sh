# does: fixes the defect and adds a test file with a snapshot
fix
printf 'import { expect, it } from "vitest";\nimport { receipt } from "./cart.js";\n\nit("is short", () => {\n  expect(receipt([])).toMatchSnapshot();\n});\n' >src/receipt.test.js
node_modules/.bin/vitest run >/dev/null 2>&1
