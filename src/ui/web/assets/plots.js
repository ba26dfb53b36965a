// Plots of a loop's iterations, and the heat strip of its checks.

import { h, spoken, svg, withTooltip } from "./dom.js";
import { clock, dollars, duration, plural } from "./format.js";

const WIDTH = 420;
const HEIGHT = 150;
const LEFT = 62;
const BOTTOM = 22;

/** Returns a figure with a bar for each iteration, and a line of their sum if `sum` is set. */
export function barPlot({ title, iterations, value, format, sum, select }) {
  const known = iterations.map((one) => ({ one, value: value(one) })).filter((item) => item.value !== null && item.value !== undefined);
  if (known.length === 0) return null;
  const max = Math.max(...known.map((item) => item.value)) || 1;
  const total = known.reduce((all, item) => all + item.value, 0);
  const step = (WIDTH - LEFT) / known.length;
  const y = (share) => (HEIGHT - BOTTOM) * (1 - share) + 6 * share;
  const parts = [0, 0.5, 1].map((share) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(share), y2: y(share) }),
    svg("text", { class: "tick", x: LEFT - 8, y: y(share) + 4, "text-anchor": "end" }, format(max * share)),
  ]);
  let running = 0;
  const line = [];
  known.forEach(({ one, value: amount }, at) => {
    running += amount;
    const soFar = running;
    const x = LEFT + at * step;
    const gap = step > 4 ? Math.min(3, step * 0.2) : 0;
    line.push(`${(x + step / 2).toFixed(1)},${y(total ? soFar / total : 0).toFixed(1)}`);
    const text = () => `#${one.number}: ${format(amount)}${sum ? `, ${format(soFar)} so far` : ""}`;
    const bar = svg("rect", { class: `bar ${one.failed ? "bad" : "plain"}`, x: x + gap / 2, y: y(amount / max), rx: Math.min(2, step / 4),
      width: Math.max(0.5, step - gap), height: Math.max(1, HEIGHT - BOTTOM - y(amount / max)) });
    const target = svg("rect", { class: "target", x, y: 0, width: step, height: HEIGHT - BOTTOM, onclick: () => select?.(one.number) },
      svg("title", null, text()));
    parts.push(bar, withTooltip(target, text));
  });
  if (sum && known.length > 1) parts.push(svg("polyline", { class: "sum", points: line.join(" ") }));
  const every = Math.max(1, Math.ceil(known.length / 10));
  known.forEach(({ one }, at) => {
    if (at % every === 0) parts.push(svg("text", { class: "tick", x: LEFT + (at + 0.5) * step, y: HEIGHT - 5, "text-anchor": "middle" }, one.number));
  });
  const caption = `${title}: ${format(total)} in ${plural(known.length, "iteration")}, at most ${format(max)} in one`;
  return h("figure", { class: "plot" },
    h("figcaption", null, h("strong", null, title), " ", h("span", null, `${format(total)} in ${plural(known.length, "iteration")}`),
      sum && h("span", { class: "legend" }, "line: sum so far")),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": caption }, parts));
}

export function plots(detail, select) {
  const iterations = detail.iterations;
  return [
    barPlot({ title: "Cost", iterations, value: (one) => one.cost_usd, format: dollars, sum: true, select }),
    barPlot({ title: "Agent time", iterations, value: (one) => one.ms, format: duration, select }),
    barPlot({ title: "Check time", iterations, select, format: duration,
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
