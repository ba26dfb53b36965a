// Plots as SVG, those of a loop's iterations, and the heat strip of its checks.

import { announce, h, hideTooltip, showTooltip, spoken, svg, withTooltip } from "./dom.js";
import { clock, dollars, duration, plural } from "./format.js";

const WIDTH = 420;
const HEIGHT = 150;
const LEFT = 62;
const BOTTOM = 22;
/** Space for the names in a plot with a row for each item. */
const NAMES = 150;
const ROW = 26;

/**
 * Returns a figure with a column for each item, which has a `name`, a `tick` for the axis and a `value`, and may have a `note`,
 * `isBad` and `onclick`. Items without a value leave a gap. With `sum`, a line shows the sum of the values so far.
 */
export function columnPlot({ title, summary, items, format, sum, max }) {
  const known = items.filter((item) => typeof item.value === "number");
  if (known.length === 0) return null;
  const top = max ?? (Math.max(...known.map((item) => item.value)) || 1);
  const total = known.reduce((all, item) => all + item.value, 0);
  const step = (WIDTH - LEFT) / items.length;
  const y = (share) => (HEIGHT - BOTTOM) * (1 - share) + 6 * share;
  const parts = [0, 0.5, 1].map((share) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(share), y2: y(share) }),
    svg("text", { class: "tick", x: LEFT - 8, y: y(share) + 4, "text-anchor": "end" }, share === 0 ? "0" : format(top * share)),
  ]);
  let running = 0;
  const line = [];
  const targets = [];
  items.forEach((item, at) => {
    if (typeof item.value !== "number") return;
    running += item.value;
    const soFar = running;
    const x = LEFT + at * step;
    // A single column would be as wide as the plot.
    const width = Math.min(step > 4 ? step - Math.min(3, step * 0.2) : step, 48);
    line.push(`${(x + step / 2).toFixed(1)},${y(total ? soFar / total : 0).toFixed(1)}`);
    const text = `${item.name}: ${format(item.value)}${item.note ?? ""}${sum ? `, ${format(soFar)} so far` : ""}`;
    parts.push(svg("rect", { class: `bar ${item.isBad ? "bad" : "plain"}`, x: x + (step - width) / 2, y: y(item.value / top), rx: Math.min(2, step / 4),
      width: Math.max(0.5, width), height: Math.max(1, HEIGHT - BOTTOM - y(item.value / top)) }));
    targets.push({ text, element: svg("rect", { class: item.onclick ? "target link" : "target", x, y: 0, width: step, height: HEIGHT - BOTTOM, onclick: item.onclick }) });
  });
  parts.push(targets.map(({ element }) => element));
  if (sum && known.length > 1) parts.push(svg("polyline", { class: "sum", points: line.join(" ") }));
  const every = Math.max(1, Math.ceil((items.length * Math.max(...items.map((item) => String(item.tick).length), 3)) / 30));
  items.forEach((item, at) => {
    if (at % every === 0) parts.push(svg("text", { class: "tick", x: LEFT + (at + 0.5) * step, y: HEIGHT - 5, "text-anchor": "middle" }, item.tick));
  });
  return figure({ title, summary, legend: sum && "line: sum so far", height: HEIGHT, parts, targets });
}

/** Returns a figure with a row for each item, which has a `name` and a `value`, and may have a `note` and `isBad`. */
export function rowPlot({ title, summary, items, format, max }) {
  const known = items.filter((item) => typeof item.value === "number");
  if (known.length === 0) return null;
  const top = max ?? (Math.max(...known.map((item) => item.value)) || 1);
  const room = WIDTH - NAMES - 74;
  const targets = [];
  const parts = known.map((item, at) => {
    const width = Math.max(1, (item.value / top) * room);
    const text = `${item.name}: ${format(item.value)}${item.note ?? ""}`;
    targets.push({ text, element: svg("rect", { class: "target", x: 0, y: at * ROW, width: WIDTH, height: ROW }) });
    return [
      svg("text", { class: "tick name", x: NAMES - 10, y: at * ROW + 17, "text-anchor": "end" }, shortName(item.name)),
      svg("rect", { class: `bar ${item.isBad ? "bad" : "plain"}`, x: NAMES, y: at * ROW + 4, width, height: ROW - 8, rx: 3 }),
      svg("text", { class: "tick", x: NAMES + width + 8, y: at * ROW + 17 }, format(item.value)),
    ];
  });
  parts.push(targets.map(({ element }) => element));
  return figure({ title, summary, height: known.length * ROW + 4, parts, targets });
}

/** Returns the end of a path, or the start of another name. */
function shortName(name) {
  if (name.length <= 21) return name;
  return name.includes("/") ? `…${name.slice(-20)}` : `${name.slice(0, 20)}…`;
}

/** The arrow keys move through the parts of the plot that has the focus, and say their text. */
function figure({ title, summary, legend, height, parts, targets }) {
  const texts = targets.map(({ text }) => text);
  const image = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", tabindex: 0,
    "aria-label": `${title}: ${summary}. ${texts.length > 12 ? "Use the arrow keys for each value." : texts.join("; ")}` }, parts);
  for (const { element, text } of targets) withTooltip(element, () => text);
  let at = -1;
  image.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    at = Math.min(Math.max(0, at < 0 && step < 0 ? targets.length - 1 : at + step), targets.length - 1);
    showTooltip(targets[at].element, texts[at]);
    announce(texts[at]);
  });
  image.addEventListener("blur", () => { at = -1; hideTooltip(); });
  return h("figure", { class: "plot" },
    h("figcaption", null, h("strong", null, title), " ", h("span", null, summary), legend && h("span", { class: "legend" }, legend)), image);
}

/** Returns a figure with a column for each iteration. */
function iterationPlot({ title, iterations, value, format, sum, select }) {
  const items = iterations.map((one) => ({
    name: `#${one.number}`, tick: one.number, value: value(one) ?? null, isBad: one.failed, onclick: () => select(one.number),
  })).filter((item) => item.value !== null);
  const total = items.reduce((all, item) => all + item.value, 0);
  return columnPlot({ title, summary: `${format(total)} in ${plural(items.length, "iteration")}`, items, format, sum });
}

export function plots(detail, select) {
  const iterations = detail.iterations;
  return [
    iterationPlot({ title: "Cost", iterations, value: (one) => one.cost_usd, format: dollars, sum: true, select }),
    iterationPlot({ title: "Agent time", iterations, value: (one) => one.ms, format: duration, select }),
    iterationPlot({ title: "Check time", iterations, select, format: duration,
      value: (one) => (one.checks.some(Boolean) ? one.checks.reduce((all, check) => all + (check?.ms ?? 0), 0) : null) }),
  ].filter(Boolean);
}

function verdict(check) {
  if (!check) return "not run";
  if (check.green) return "green";
  return check.timed_out ? "red: timed out" : "red";
}

/** Returns the table of checks and iterations. The columns' headings select an iteration. */
export function heatStrip(detail, selected, select) {
  const columns = [];
  if (detail.preflight.length > 0) columns.push({ number: 0, checks: detail.preflight, label: "before the first iteration" });
  for (const one of detail.iterations) columns.push({ number: one.number, checks: one.checks, second_look: one.second_look, started: one.started_ms });
  if (detail.checks.length === 0) return h("p", { class: "empty" }, "This loop has no checks.");
  if (columns.length === 0) return h("p", { class: "empty" }, "No check has run yet.");
  const current = columns.some((column) => column.number === selected) ? selected : columns[columns.length - 1].number;
  const heading = (column) => {
    const isCurrent = column.number === current;
    const name = column.number === 0 ? "before the first iteration" : `iteration ${column.number}`;
    return h("th", { scope: "col" }, h("button", {
      type: "button", class: "column", tabindex: isCurrent ? 0 : -1, "aria-pressed": String(isCurrent), "aria-label": name,
      "data-number": column.number, onclick: () => select(column.number), onkeydown: moveFocus,
    }, column.number));
  };
  const row = (check, at) => h("tr", null,
    h("th", { scope: "row" }, h("code", null, check.command), check.label && h("span", { class: "tag warn" }, check.label)),
    columns.map((column) => {
      const report = column.checks[at];
      const look = report ? second(column, at) : null;
      const isDoubted = report?.green && column.second_look?.[at]?.green === false;
      const kind = !report ? "none" : isDoubted ? "doubt" : report.green ? "good" : "bad";
      const cell = h("td", { class: `heat ${kind}${column.number === current ? " current" : ""}`, onclick: () => select(column.number) },
        h("span", { "aria-hidden": "true" }, { none: "·", doubt: "!", good: "", bad: "✕" }[kind]), spoken(isDoubted ? "green, but not by the original tests" : verdict(report)));
      return withTooltip(cell, () => [`#${column.number} ${check.command}`, verdict(report), report && duration(report.ms),
        report?.line, look, column.started && `began ${clock(column.started)}`].filter(Boolean).join("\n"));
    }));
  return h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Checks in each iteration" },
    h("table", { class: "strip-table" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Check"), columns.map(heading))),
      h("tbody", null, detail.checks.map(row))));
}

function second(column, at) {
  const report = column.second_look?.[at];
  return report ? `second look: ${verdict(report)}` : null;
}

function moveFocus(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const all = [...event.currentTarget.closest("tr").querySelectorAll("button")];
  const next = all[all.indexOf(event.currentTarget) + step];
  if (!next) return;
  event.currentTarget.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
