// All loops, as trees, grouped by repository.

import { open, getJson } from "./api.js";
import { coalesce, h, spoken, svg, withTooltip } from "./dom.js";
import { age, baseName, costOf, dollars, look, needsYou, plural, state } from "./format.js";

/** Rows in the page at first; a button shows more. */
const ROWS_STEP = 300;

export function overview(main) {
  const rows = new Map();
  const drawn = new Map();
  let archived = null;
  let filter = { text: "", kind: "all" };
  let limit = ROWS_STEP;
  let isLoaded = false;
  let unread = 0;

  const tiles = h("dl", { class: "tiles" });
  const search = h("input", {
    type: "search", id: "filter", placeholder: "Filter by name, task or path", autocomplete: "off", spellcheck: "false",
    oninput: () => { filter.text = search.value.toLowerCase(); limit = ROWS_STEP; draw(); },
    onkeydown: (event) => { if (event.key === "Escape") { search.value = ""; filter.text = ""; search.blur(); draw(); } },
  });
  const kinds = h("select", { id: "kind", onchange: () => { filter.kind = kinds.value; limit = ROWS_STEP; draw(); } },
    [["all", "All states"], ["live", "Running"], ["you", "Needs you"], ["ended", "Ended"]]
      .map(([value, text]) => h("option", { value }, text)));
  const archiveButton = h("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: toggleArchive }, "Archived");
  const list = h("div", { class: "groups" });
  const reading = h("p", { class: "note", role: "status", hidden: true });
  const more = h("button", { type: "button", class: "more", hidden: true, onclick: () => { limit += ROWS_STEP; draw(); } });
  main.replaceChildren(
    h("h1", { class: "hidden" }, "All loops"),
    tiles,
    h("div", { class: "toolbar", role: "search" },
      h("label", { class: "hidden", for: "filter" }, "Filter loops"), search,
      h("label", { class: "hidden", for: "kind" }, "State"), kinds, archiveButton),
    reading, list, more);

  async function toggleArchive() {
    if (archived) archived = null;
    else archived = (await getJson("loops?archived").catch(() => ({ loops: [] }))).loops;
    archiveButton.setAttribute("aria-pressed", String(archived !== null));
    draw();
  }

  function matches(row) {
    if (filter.kind === "live" && !row.live) return false;
    if (filter.kind === "you" && !needsYou(row)) return false;
    if (filter.kind === "ended" && (row.live || needsYou(row))) return false;
    const text = `${row.name} ${row.task ?? ""} ${row.workspace ?? ""} ${row.agent ?? ""}`.toLowerCase();
    return text.includes(filter.text);
  }

  function draw() {
    drawTiles();
    reading.hidden = unread === 0;
    if (unread > 0) reading.textContent = `Reading ${plural(unread, "older loop")} …`;
    const all = [...rows.values(), ...(archived ?? [])];
    const shown = all.filter(matches);
    if (!isLoaded) return;
    if (shown.length === 0 && unread === 0) {
      list.replaceChildren(h("p", { class: "empty" }, all.length === 0
        ? ["No loops yet. Start one with ", h("code", null, "ralph run"), "."]
        : "No loop matches the filter."));
      more.hidden = true;
      return;
    }
    const focused = document.activeElement?.closest?.("[data-loop]")?.dataset.loop;
    let left = limit;
    const sections = [];
    for (const group of groups(shown)) {
      if (left <= 0) break;
      const lines = group.lines.slice(0, left);
      left -= lines.length;
      const live = group.lines.filter(({ row }) => row.live).length;
      sections.push(h("section", { class: "group" },
        h("h2", null, baseName(group.project), " ", h("span", { class: "path" }, group.place),
          h("span", { class: "count" }, live > 0 ? `${live} of ${group.lines.length} running` : plural(group.lines.length, "loop"))),
        h("ul", { class: "loops" }, lines.map(({ row, depth }) => line(row, depth)))));
    }
    list.replaceChildren(...sections);
    more.hidden = shown.length <= limit;
    more.textContent = `Show ${Math.min(ROWS_STEP, shown.length - limit)} more of ${shown.length}`;
    if (focused) list.querySelector(`[data-loop="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
  }

  function line(row, depth) {
    const key = `${row.name}/${depth}`;
    const known = drawn.get(key);
    if (known?.row === row) return known.element;
    const element = loopLine(row, depth);
    drawn.set(key, { row, element });
    return element;
  }

  function drawTiles() {
    const all = [...rows.values()];
    const today = Date.now() - 86400000;
    const recent = all.filter((row) => row.updated_ms > today);
    const cost = recent.reduce((sum, row) => sum + (row.cost_usd ?? 0), 0);
    const values = [
      ["Running", all.filter((row) => row.live).length, "run"],
      ["Need you", all.filter(needsYou).length, "ask"],
      ["Done in 24 h", recent.filter((row) => row.status === "done").length, "good"],
      ["Failed in 24 h", recent.filter((row) => row.status === "failed" && state(row) === "failed").length, "bad"],
      ["Cost (24 h)", dollars(cost), "off"],
    ];
    tiles.replaceChildren(...values.map(([name, value, kind]) =>
      h("div", { class: `tile ${kind}${value === 0 ? " zero" : ""}` }, h("dt", null, name), h("dd", null, value))));
  }

  const redraw = coalesce(draw);
  const close = open("events", {
    loops: (event) => {
      if (event.reset) rows.clear();
      for (const name of event.removed) { rows.delete(name); }
      for (const row of event.loops) rows.set(row.name, row);
      if (drawn.size > 4 * rows.size + 1000) drawn.clear();
      unread = event.unread;
      isLoaded = true;
      redraw();
    },
  });
  const clock = setInterval(() => {
    for (const element of list.querySelectorAll("time[data-ms]")) element.textContent = age(Number(element.dataset.ms));
  }, 5000);

  return {
    page: "overview",
    close: () => { close(); clearInterval(clock); },
    onkey: (event) => {
      if (event.key === "/") { search.focus(); return true; }
      if (event.key !== "j" && event.key !== "k") return false;
      const links = [...list.querySelectorAll("[data-loop] a")];
      const at = links.indexOf(document.activeElement);
      const next = event.key === "j" ? at + 1 : at < 0 ? 0 : at - 1;
      links[Math.min(Math.max(0, next), links.length - 1)]?.focus();
      return true;
    },
  };
}

/** Returns the loops of each repository, each child loop below its parent, the busiest first. */
function groups(all) {
  const names = new Map(all.map((row) => [row.name, row]));
  const children = new Map();
  const tops = [];
  for (const row of all) {
    const parent = row.parent !== row.name && names.get(row.parent);
    // Names can be reused, so that parents may form a cycle.
    if (parent && !isBelow(row, parent, names)) {
      if (!children.has(parent.name)) children.set(parent.name, []);
      children.get(parent.name).push(row);
    } else tops.push(row);
  }
  const order = (a, b) => rank(a) - rank(b) || (b.updated_ms ?? 0) - (a.updated_ms ?? 0) || a.name.localeCompare(b.name);
  const byProject = new Map();
  for (const row of tops.sort(order)) {
    const project = row.project ?? "unknown";
    if (!byProject.has(project)) byProject.set(project, { project, place: row.project_short ?? project, lines: [] });
    add(byProject.get(project).lines, row, 0);
  }
  function add(lines, row, depth) {
    lines.push({ row, depth });
    for (const child of (children.get(row.name) ?? []).sort(order)) add(lines, child, depth + 1);
  }
  return [...byProject.values()];
}

function isBelow(ancestor, row, names) {
  for (let steps = 0; row && steps < 100; steps += 1) {
    if (row === ancestor) return true;
    row = names.get(row.parent);
  }
  return Boolean(row);
}

function rank(row) {
  if (row.live) return 0;
  return needsYou(row) ? 1 : 2;
}

export function statusMark(row) {
  const [mark, kind] = look(state(row));
  return h("span", { class: `mark ${kind}` }, h("span", { "aria-hidden": "true" }, mark), spoken(state(row)));
}

export function loopLine(row, depth) {
  const doing = row.live ? row.now ?? "" : row.why ?? "";
  return h("li", { class: "loop", "data-loop": row.name, "data-depth": Math.min(depth, 4) },
    statusMark(row),
    h("div", { class: "what" },
      h("a", { href: `#/loop/${encodeURIComponent(row.name)}` }, row.name),
      row.archived && h("span", { class: "tag" }, "archived"),
      row.request && h("span", { class: "tag" }, row.request === "pause" ? "pausing" : "stopping"),
      h("span", { class: "task" }, row.task ?? "")),
    h("div", { class: "doing" }, h("span", { class: `word ${look(state(row))[1]}` }, state(row)), doing && h("span", { class: "detail" }, doing)),
    h("div", { class: "strip" }, strip(row.history ?? []), marks(row.checks ?? [])),
    h("div", { class: "numbers" },
      h("span", { class: "iteration" }, spoken("iteration "), `#${row.iteration ?? 0}`, row.max_iterations ? h("span", { class: "of" }, `/${row.max_iterations}`) : null),
      h("span", { class: "cost" }, spoken("cost "), costOf(row)),
      row.updated_ms && h("time", { "data-ms": row.live ? row.started_ms : row.updated_ms }, age(row.live ? row.started_ms : row.updated_ms))));
}

/** Bars for the last iterations: their height is the share of green checks. */
function strip(history) {
  if (history.length === 0) return null;
  const width = 6;
  const bars = history.map(([green, ran, failed], at) => {
    const share = ran === 0 ? 0 : green / ran;
    const kind = failed ? "bad" : ran === 0 ? "none" : share === 1 ? "good" : "part";
    const height = kind === "none" ? 3 : Math.max(3, share * 18);
    return svg("rect", { class: `cell ${kind}`, x: at * width, y: 18 - height, width: width - 2, height, rx: 1 });
  });
  const [green, ran] = history[history.length - 1];
  return withTooltip(
    svg("svg", { class: "bars", role: "img", width: history.length * width, height: 18, viewBox: `0 0 ${history.length * width} 18`,
      "aria-label": `last ${plural(history.length, "iteration")}; ${green} of ${ran} checks green in the newest` }, bars),
    () => `last ${plural(history.length, "iteration")}: ${green} of ${ran} checks green now`);
}

function marks(checks) {
  if (checks.length === 0) return null;
  const green = checks.filter((one) => one === true).length;
  return h("span", { class: "marks", role: "img", "aria-label": `${green} of ${plural(checks.length, "check")} green` },
    checks.slice(0, 8).map((one) => h("span", { class: `dot ${one === null ? "none" : one ? "good" : "bad"}`, "aria-hidden": "true" })));
}

