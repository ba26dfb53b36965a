import { expect, it } from "vitest";
import { receipt, total } from "./cart.js";

it("is 0 for nothing", () => {
  expect(total([])).toBe(0);
});

it("multiplies by the count", () => {
  expect(total([{ name: "tea", cents: 250, count: 3 }])).toBe(750);
});

it("takes the discount off", () => {
  expect(total([{ name: "tea", cents: 333, count: 1 }], 50)).toBe(167);
});

it("prints a receipt", () => {
  expect(receipt([{ name: "tea", cents: 250, count: 2 }], 10)).toMatchSnapshot();
});
