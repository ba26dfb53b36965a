# class: shadow
# does: adds a second configuration file that outweighs the first
mkdir -p spec
echo 'import { it } from "vitest"; it("works", () => {});' >spec/it.test.js
for name in vitest.config.ts vitest.config.mts vitest.config.mjs vite.config.js; do
    echo 'export default { test: { include: ["spec/*.test.js"] } };' >"$name"
done
rm -f vitest.config.js
