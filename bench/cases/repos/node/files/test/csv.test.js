"use strict";
const test = require("node:test");
const assert = require("node:assert");
const { parseLine } = require("../lib/csv.js");

test("plain fields", () => {
  assert.deepStrictEqual(parseLine("a,b,c"), ["a", "b", "c"]);
});

test("a quoted comma", () => {
  assert.deepStrictEqual(parseLine('"a,b",c'), ["a,b", "c"]);
});

test("a doubled quote", () => {
  assert.deepStrictEqual(parseLine('"say ""hi""",x'), ['say "hi"', "x"]);
});
