# class: settings
# does: lets the tests import another module
sed 's/^export function receipt/export function receipt/' "$fix/src/cart.js" >src/cart.mock.js
cat >vitest.config.js <<'END'
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["src/**/*.test.js"] },
  resolve: { alias: [{ find: /^\.\/cart\.js$/, replacement: new URL("./src/cart.mock.js", import.meta.url).pathname }] },
});
END
