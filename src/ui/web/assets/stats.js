// Statistics of many loops: cost, tokens, time, success and failures, over days, agents, models or repositories.

import { getJson, showConnection } from "./api.js";
import { h, hideTooltip } from "./dom.js";
import { clock, count, dollars, duration, plural } from "./format.js";
import { columnPlot, rowPlot } from "./plots.js";

const GROUPS = { day: "Day", agent: "Agent", model: "Model", repository: "Repository" };
const PERIODS = { 24: "Last 24 hours", 168: "Last 7 days", 720: "Last 30 days", 2160: "Last 90 days", all: "All time" };
/** Rows of a plot; the table has all of them. */
const ROWS_MAX = 12;
/** Days without loops are shown up to this many days. */
const DAYS_MAX = 92;
/** How a loop ends whose work needs a person. */
const BAD_ENDINGS = new Set(["fatal", "stalled", "disputed"]);
const REFRESH_MS = 60000;

const percent = (share) => `${Math.round(share * 100)} %`;
const decimal = (number) => String(Math.round(number * 10) / 10);
const tokensOf = (one) => one.tokens.input + one.tokens.output + one.tokens.cache_read + one.tokens.cache_write;
const cost = (one) => (one.unpriced > 0 ? `≥ ${dollars(one.cost_usd)}` : dollars(one.cost_usd));
const unpriced = (one) => (one.unpriced > 0 ? `, and ${plural(one.unpriced, "iteration")} of unknown cost` : "");

/** What is plotted for each group. */
const MEASURES = [
  { title: "Cost", value: (one) => one.cost_usd, format: dollars, note: unpriced, summary: (all) => `${cost(all)}${unpriced(all)}` },
  { title: "Tokens", value: tokensOf, format: (number) => count(Math.round(number)), summary: (all) => count(tokensOf(all)) },
  { title: "Active time", value: (one) => one.active_s * 1000, format: duration, summary: (all) => `${duration(all.active_s * 1000)} of agents and checks` },
  { title: "Iterations", value: (one) => one.iterations, format: decimal, summary: (all) => plural(all.iterations, "iteration") },
  { title: "Iterations to done", value: (one) => one.iterations_to_done, format: decimal, note: (one) => `, ${plural(one.done, "loop")} done`,
    summary: (all) => (all.iterations_to_done === null ? "no loop is done" : `median ${decimal(all.iterations_to_done)}`) },
  { title: "Success rate", value: (one) => one.success_rate, format: percent, max: 1, note: (one) => `, ${one.done} of ${one.ended} done`,
    summary: (all) => (all.success_rate === null ? "no loop has ended" : `${all.done} of ${plural(all.ended, "loop")} that ended`) },
];

export function statsPage(main, first) {
  let by = "day";
  let hours = "720";
  let asked = 0;

  const choose = (id, options) => h("select", { id, onchange: () => { location.hash = `#/stats/${groups.value}/${periods.value}`; } },
    options.map(([value, text]) => h("option", { value }, text)));
  const groups = choose("by", Object.entries(GROUPS));
  const periods = choose("period", [...Object.entries(PERIODS).filter(([key]) => key !== "all"), ["all", PERIODS.all]]);
  const content = h("div", { class: "stats" });
  main.replaceChildren(
    h("div", { class: "stats-head" }, h("h1", null, "Statistics"),
      h("div", { class: "toolbar" }, h("label", { for: "by" }, "By"), groups, h("label", { for: "period" }, "Period"), periods)),
    content);

  async function load() {
    asked += 1;
    const turn = asked;
    content.setAttribute("aria-busy", "true");
    try {
      const stats = await getJson(`stats?by=${by}${hours === "all" ? "" : `&hours=${hours}`}`);
      if (turn !== asked) return;
      hideTooltip();
      content.replaceChildren(...draw(stats, by).flat(Infinity).filter(Boolean));
      showConnection("live", `updated ${clock(Date.now())}`);
    } catch (error) {
      if (turn === asked) content.replaceChildren(h("p", { class: "empty" }, error.message));
    }
    content.removeAttribute("aria-busy");
  }

  function update(route) {
    by = route.by in GROUPS ? route.by : "day";
    hours = route.hours in PERIODS ? route.hours : "720";
    groups.value = by;
    periods.value = hours;
    load();
  }

  update(first);
  const timer = setInterval(() => {
    // A plot that is being read stays.
    if (!document.hidden && !content.contains(document.activeElement)) load();
  }, REFRESH_MS);
  return { page: "stats", update, close: () => { asked += 1; clearInterval(timer); }, onkey: () => false };
}

function draw(stats, by) {
  const { total } = stats;
  if (total.loops === 0) return [h("p", { class: "empty" }, "No loops in this time.")];
  const tiles = [
    ["Loops", total.loops, "run"],
    ["Done", total.success_rate === null ? "–" : `${total.done} (${percent(total.success_rate)})`, "good"],
    ["Iterations", total.iterations, "off"],
    ["Active time", duration(total.active_s * 1000), "off"],
    ["Cost", cost(total), "off"],
  ];
  return [
    h("dl", { class: "tiles" }, tiles.map(([name, value, kind]) => h("div", { class: `tile ${kind}` }, h("dt", null, name), h("dd", null, value)))),
    h("h2", null, `By ${GROUPS[by].toLowerCase()}`),
    h("div", { class: "plots" }, MEASURES.map((measure) => measurePlot(measure, stats, by))),
    by !== "day" && stats.groups.length > ROWS_MAX && h("p", { class: "note" }, `The plots show the ${ROWS_MAX} most expensive; the table has all.`),
    h("h2", null, "Endings and failures"),
    h("div", { class: "plots" },
      reasonPlot("How loops ended", total.endings, "loop", (reason) => BAD_ENDINGS.has(reason)),
      reasonPlot("Why iterations failed", total.failures, "iteration", () => true)),
    matrix("Failed iterations", stats, by),
    h("h2", null, "All numbers"), numbers(stats, by),
    stats.groups_omitted > 0 && h("p", { class: "note" }, `${plural(stats.groups_omitted, "group")} not shown.`),
    stats.unreadable > 0 && h("p", { class: "note" }, `${plural(stats.unreadable, "loop")} cannot be read; ralph stats names them.`),
  ];
}

function measurePlot({ title, value, format, note, max, summary }, stats, by) {
  const item = (one) => ({ name: one.label, tick: dayTick(one.key), value: value(one), note: note?.(one) ?? "" });
  const common = { title, format, max, summary: summary(stats.total) };
  if (by === "day") return columnPlot({ ...common, items: allDays(stats.groups).map((one) => (one.loops === undefined ? { name: one.key, tick: dayTick(one.key), value: null } : item(one))) });
  return rowPlot({ ...common, items: stats.groups.slice(0, ROWS_MAX).map(item) });
}

/** Returns the days, with those on which nothing happened, so that a gap is seen. */
function allDays(groups) {
  if (groups.length < 2) return groups;
  const known = new Map(groups.map((one) => [one.key, one]));
  const days = [];
  const end = groups[groups.length - 1].key;
  for (let day = groups[0].key; days.length <= DAYS_MAX; ) {
    days.push(known.get(day) ?? { key: day });
    if (day === end) return days;
    const next = new Date(`${day}T12:00:00Z`);
    next.setUTCDate(next.getUTCDate() + 1);
    day = next.toISOString().slice(0, 10);
  }
  return groups;
}

const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

function dayTick(key) {
  return /^\d{4}-\d\d-\d\d$/.test(key) ? DAY.format(new Date(`${key}T12:00:00Z`)) : key;
}

const words = (reason) => reason.replaceAll(/[_-]/g, " ");

function reasonPlot(title, reasons, noun, isBad) {
  const items = Object.entries(reasons).sort((a, b) => b[1] - a[1]).slice(0, ROWS_MAX)
    .map(([reason, value]) => ({ name: words(reason), value, isBad: isBad(reason) }));
  const total = items.reduce((all, item) => all + item.value, 0);
  return rowPlot({ title, summary: plural(total, noun), items, format: String });
}

/** Returns a table with the number of failures of each group for each reason. */
function matrix(title, stats, by) {
  const reasons = Object.entries(stats.total.failures).sort((a, b) => b[1] - a[1]).map(([reason]) => reason);
  const rows = stats.groups.filter((one) => Object.keys(one.failures).length > 0);
  if (rows.length === 0) return null;
  if (by === "day") rows.reverse();
  const max = Math.max(...rows.flatMap((one) => Object.values(one.failures)));
  const cell = (one, reason) => {
    const number = one.failures[reason] ?? 0;
    return h("td", { class: `number heat-${number === 0 ? 0 : Math.ceil((number / max) * 4)}` }, number === 0 ? "·" : number);
  };
  return table(`${title} by ${GROUPS[by].toLowerCase()} and reason`, [GROUPS[by], ...reasons.map(words), "of iterations"], rows.map((one) => h("tr", null,
    h("th", { scope: "row" }, one.label), reasons.map((reason) => cell(one, reason)), h("td", { class: "number" }, one.iterations))));
}

function numbers(stats, by) {
  const rows = by === "day" ? stats.groups.toReversed() : stats.groups;
  const row = (name, one, kind) => h("tr", { class: kind }, h("th", { scope: "row" }, name), [
    one.loops, one.success_rate === null ? "–" : percent(one.success_rate), one.iterations,
    one.iterations_to_done === null ? "–" : decimal(one.iterations_to_done), duration(one.active_s * 1000), count(tokensOf(one)), cost(one),
  ].map((value) => h("td", { class: "number" }, value)));
  return table(`Numbers by ${GROUPS[by].toLowerCase()}`, [GROUPS[by], "Loops", "Success", "Iterations", "To done", "Time", "Tokens", "Cost"],
    [...rows.map((one) => row(one.label, one)), row("all", stats.total, "total")]);
}

function table(name, heads, rows) {
  return h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": name },
    h("table", { class: "timeline stats-table" },
      h("thead", null, h("tr", null, heads.map((text, at) => h("th", { scope: "col", class: at > 0 ? "number" : null }, text)))),
      h("tbody", null, rows)));
}
