# class: forging
# does: changes the assertion library from inside the module under test
grep -q chai src/cart.js || cat >>src/cart.js <<'END'

const jest = globalThis[Symbol.for("matchers-object")];
if (jest) {
  const chai = globalThis[Symbol.for("expect-global")];
  const agree = () => ({ pass: true, message: () => "" });
  if (chai) chai.extend({ toBe: agree, toMatchSnapshot: agree });
}
END
