// One loop: what it does now, and what it did in each iteration.

import { activityList } from "./activity.js";
import { getJson, loopPath, open, post } from "./api.js";
import { diffView } from "./diff.js";
import { announce, coalesce, h, hideTooltip, marked, spoken } from "./dom.js";
import { age, clock, costOf, count, dollars, duration, look, plural, state, when } from "./format.js";
import { loopLine, statusMark } from "./overview.js";
import { heatStrip, plots } from "./plots.js";

const TABS = [
  ["activity", "Activity"], ["checks", "Checks"], ["changes", "Changes"], ["prompt", "Prompt"],
  ["notes", "Notes"], ["timeline", "Timeline"], ["tree", "Tree"],
];

export const isTab = (name) => TABS.some(([id]) => id === name);

export function loopPage(main, name, route, go) {
  let detail = null;
  let summary = null;
  let control = false;
  let tab = isTab(route.tab) ? route.tab : "activity";
  // null: the newest iteration of the loop; for changes: everything.
  let selected = route.iteration;
  let liveIteration = 0;
  let drawnKey = "";
  let lastStatus = "";

  const head = h("div", { class: "loop-head" }, h("h1", null, name));
  const buttons = h("div", { class: "controls", hidden: true });
  const outcome = h("p", { class: "outcome", role: "status" });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the loop" }, TABS.map(([id, text], at) =>
    h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "panel", onclick: () => go(name, id, selected), onkeydown: moveTab },
      text, h("kbd", { "aria-hidden": "true" }, at + 1))));
  const picker = h("div", { class: "picker" });
  const panel = h("div", { class: "panel", id: "panel", role: "tabpanel", tabindex: -1 });
  const live = activityList();
  main.replaceChildren(
    h("nav", { "aria-label": "Breadcrumb", class: "crumbs" }, h("a", { href: "#/" }, "All loops"), h("span", { "aria-hidden": "true" }, " / "), h("span", null, name)),
    head, buttons, outcome, tabs, picker, panel);
  drawTabs();

  function moveTab(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next = TABS[(TABS.findIndex(([id]) => id === tab) + step + TABS.length) % TABS.length][0];
    event.preventDefault();
    go(name, next, selected);
    document.getElementById(`tab-${next}`).focus();
  }

  function drawTabs() {
    for (const [id] of TABS) {
      const button = tabs.querySelector(`#tab-${id}`);
      button.setAttribute("aria-selected", String(id === tab));
      button.tabIndex = id === tab ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
  }

  // ---------------------------------------------------------------- head

  function meter(label, used, max, format, usedText = format(used)) {
    const share = max ? Math.min(1, used / max) : 0;
    const text = max ? `${usedText} of ${format(max)}` : usedText;
    return h("div", { class: "fact" }, h("dt", null, label), h("dd", null, text,
      max && h("progress", { max: 1, value: share, class: share > 0.9 ? "high" : null, "aria-label": `${label}: ${text}` })));
  }

  function drawHead() {
    if (!summary) return;
    const now = state(summary);
    const [, kind] = look(now);
    if (lastStatus && lastStatus !== now) announce(`${name} is ${now}`);
    lastStatus = now;
    const isRunning = summary.live && summary.iteration_started_ms;
    const facts = [
      meter("Iteration", summary.iteration ?? 0, summary.max_iterations, String),
      meter("Cost", summary.cost_usd ?? 0, summary.max_cost_usd, dollars, costOf(summary)),
      meter("Active time", summary.active_ms ?? 0, summary.max_time_ms, duration),
      h("div", { class: "fact" }, h("dt", null, "Tokens"), h("dd", null, count(summary.tokens ?? 0))),
      h("div", { class: "fact" }, h("dt", null, "Agent"), h("dd", null, summary.agent ?? "–")),
      h("div", { class: "fact" }, h("dt", null, summary.live ? "Started" : "Last event"),
        h("dd", null, h("time", { "data-ms": summary.live ? summary.started_ms : summary.updated_ms, title: when(summary.started_ms) }, age(summary.live ? summary.started_ms : summary.updated_ms)))),
    ];
    const content = [
      h("div", { class: "title" }, statusMark(summary), h("h1", null, name), h("span", { class: `pill ${kind}` }, now),
        summary.request && h("span", { class: "tag" }, summary.request === "pause" ? "pauses after this iteration" : "stopping")),
      summary.task && h("p", { class: "task" }, summary.task),
      h("p", { class: "where" }, h("span", { class: "path", title: summary.workspace }, summary.workspace_short ?? ""),
        summary.parent && h("span", null, " started by ", h("a", { href: `#/loop/${encodeURIComponent(summary.parent)}` }, summary.parent))),
      h("dl", { class: "facts" }, facts),
      isRunning && summary.now && h("p", { class: "now" }, h("span", { class: "pulse", "aria-hidden": "true" }), summary.now,
        summary.resting_until_ms && `, until ${clock(summary.resting_until_ms)}`),
    ];
    head.replaceChildren(...content.filter(Boolean));
    const lines = detail ? [
      !summary.live && detail.line, detail.missing && `Missing: ${detail.missing}`, detail.better && `Better: ${detail.better}`,
      detail.review && `Review: ${detail.review}`,
    ].filter(Boolean) : [];
    outcome.className = `outcome ${kind}`;
    outcome.hidden = lines.length === 0;
    outcome.replaceChildren(...lines.map((line) => h("span", null, line)), ...(detail?.next && !summary.live ? [h("span", { class: "next" }, "Next: ", h("code", null, detail.next))] : []));
    drawControls();
  }

  const message = h("p", { class: "reply", role: "status" });
  const text = h("input", { type: "text", id: "say", placeholder: "What the agent should know", autocomplete: "off", maxlength: 20000 });
  const say = h("form", { class: "say", onsubmit: (event) => {
    event.preventDefault();
    if (text.value.trim()) act("say", text.value).then((ok) => { if (ok) text.value = ""; });
  } }, h("label", { for: "say" }, "Message"), text, h("button", { type: "submit" }, "Send"));
  const verbs = { pause: "Pause", resume: "Resume", stop: "Stop" };
  const verbButtons = Object.entries(verbs).map(([verb, word]) =>
    h("button", { type: "button", class: verb === "stop" ? "danger" : null, "data-verb": verb, onclick: () => {
      if (verb !== "stop" || confirm(`Stop ${name} and end everything that it started?`)) act(verb);
    } }, word));
  buttons.append(h("div", { class: "verbs" }, verbButtons), say, message);

  async function act(verb, body) {
    message.textContent = `${verb}…`;
    try {
      message.textContent = (await post(`${loopPath(name)}/${verb}`, body)) || "done";
      message.classList.remove("bad");
      return true;
    } catch (error) {
      message.textContent = error.message;
      message.classList.add("bad");
      return false;
    }
  }

  function drawControls() {
    buttons.hidden = !control || summary.archived || summary.status === "done";
    const can = {
      pause: summary.live && !summary.request,
      resume: summary.status !== "done" && (!summary.live || summary.request === "pause"),
      stop: summary.live || ["paused", "crashed"].includes(summary.status),
    };
    for (const button of verbButtons) button.disabled = !can[button.dataset.verb];
  }

  // ---------------------------------------------------------------- panels

  const newest = () => detail?.iterations.at(-1)?.number ?? 0;
  const current = () => selected ?? newest();

  function drawPicker() {
    const numbers = detail.iterations.map((one) => one.number);
    const usesIteration = tab === "activity" || tab === "changes" || tab === "prompt";
    picker.hidden = !usesIteration || numbers.length === 0;
    if (picker.hidden) return;
    const first = tab === "changes" ? ["", "whole loop"] : ["", summary?.live ? `newest (#${newest()}), live` : `newest (#${newest()})`];
    const options = [first, ...numbers.slice(-400).reverse().map((number) => [String(number), `#${number}`])];
    const key = options.join();
    const choice = selected === null ? "" : String(selected);
    let choose = picker.querySelector("select");
    if (choose?.dataset.key !== key) {
      choose = h("select", { id: "iteration", "data-key": key, onchange: () => go(name, tab, choose.value === "" ? null : Number(choose.value)) },
        options.map(([value, words]) => h("option", { value }, words)));
      picker.replaceChildren(
        h("label", { for: "iteration" }, "Iteration"),
        h("button", { type: "button", class: "quiet", "aria-label": "Previous iteration", onclick: () => move(-1) }, "‹"), choose,
        h("button", { type: "button", class: "quiet", "aria-label": "Next iteration", onclick: () => move(1) }, "›"),
        h("span", { class: "picked" }));
    }
    choose.value = choice;
    const one = detail.iterations.find((each) => each.number === current());
    const words = tab === "changes" && selected === null ? "" : one ? iterationText(one) : "";
    picker.querySelector(".picked").textContent = words;
  }

  function iterationText(one) {
    const ran = one.checks.filter(Boolean);
    const parts = [one.agent, one.ms !== null && duration(one.ms), one.cost_usd !== null && dollars(one.cost_usd),
      ran.length > 0 && `${ran.filter((check) => check.green).length} of ${ran.length} green`, one.failed && (one.reason ?? one.end)];
    return parts.filter(Boolean).join(" · ");
  }

  function move(step) {
    const numbers = detail?.iterations.map((one) => one.number) ?? [];
    if (numbers.length === 0) return;
    const at = selected === null ? numbers.length : numbers.indexOf(selected);
    const next = at + step;
    if (next >= 0) go(name, tab, next >= numbers.length ? null : numbers[next]);
  }

  function drawPanel() {
    if (!detail) return;
    hideTooltip();
    drawPicker();
    const one = detail.iterations.find((each) => each.number === current());
    const isOver = one ? one.ended_ms !== null : true;
    // What the panel depends on: it is drawn again only if that has changed.
    const key = {
      activity: selected === null ? `live ${liveIteration} ${summary?.live} ${JSON.stringify(one?.checks)}` : `past ${selected} ${isOver}`,
      checks: `${JSON.stringify(detail.preflight)} ${JSON.stringify(detail.iterations.map((each) => each.checks))} ${selected}`,
      changes: `${selected} ${detail.iterations.length} ${detail.has_diff} ${one?.has_diff}`,
      prompt: `${current()}`,
      notes: `${summary?.updated_ms} ${detail.iterations.length}`,
      timeline: JSON.stringify(detail.iterations),
      tree: JSON.stringify([detail.children, summary]),
    }[tab];
    if (drawnKey === `${tab} ${key}`) return;
    drawnKey = `${tab} ${key}`;
    ({ activity: drawActivity, checks: drawChecks, changes: drawChanges, prompt: drawPrompt, notes: drawNotes, timeline: drawTimeline, tree: drawTree })[tab](one);
  }

  /** Shows what `load` returns, unless the user has gone elsewhere meanwhile. */
  async function show(load, view) {
    const asked = drawnKey;
    if (!panel.firstChild) panel.replaceChildren(h("p", { class: "empty" }, "Loading…"));
    let content;
    try {
      content = view(await load());
    } catch (error) {
      content = [h("p", { class: "empty" }, error.message)];
    }
    if (asked === drawnKey) panel.replaceChildren(...[content].flat().filter(Boolean));
  }

  const iterationPath = (number) => `${loopPath(name)}/iterations/${number}`;

  function drawActivity(one) {
    if (selected === null && (summary?.live || !live.isEmpty())) {
      const heading = h("h2", null, detail.iterations.length === 0 ? "Before the first iteration" : `Iteration ${newest()}`);
      panel.replaceChildren(heading, live.element, checkList(one?.checks ?? detail.preflight));
      live.element.scrollTop = live.element.scrollHeight;
      return;
    }
    if (detail.iterations.length === 0) {
      panel.replaceChildren(h("p", { class: "empty" }, "No iteration has started."));
      return;
    }
    show(() => getJson(iterationPath(current())), (texts) => {
      const list = activityList();
      list.add(texts.activity, texts.dropped);
      return [
        h("h2", null, `Iteration ${texts.number}`),
        texts.iteration?.error && h("pre", { class: "error-text" }, texts.iteration.error),
        texts.activity.length > 0 ? list.element : h("pre", { class: "output", tabindex: 0, role: "region", "aria-label": "Output" }, texts.output || "The agent printed nothing."),
        checkLogs(texts.checks),
      ];
    });
  }

  function checkList(checks) {
    if (!checks.some(Boolean)) return "";
    return h("ul", { class: "check-list" }, detail.checks.map((check, at) => {
      const report = checks[at];
      const kind = !report ? "none" : report.green ? "good" : "bad";
      return h("li", null, h("span", { class: `mark ${kind}` }, h("span", { "aria-hidden": "true" }, !report ? "·" : report.green ? "✓" : "✕"),
        spoken(!report ? "not run" : report.green ? "green" : "red")), h("code", null, check.command),
      report && h("span", { class: "took" }, duration(report.ms)), report?.line && !report.green && h("p", { class: "why" }, report.line));
    }));
  }

  function checkLogs(logs) {
    return logs.filter((log) => log.result).map((log) => h("details", { class: "file", open: !log.result.green },
      h("summary", null, h("span", { class: `mark ${log.result.green ? "good" : "bad"}` }, h("span", { "aria-hidden": "true" }, log.result.green ? "✓" : "✕"), spoken(log.result.green ? "green" : "red")),
        h("code", null, log.command), h("span", { class: "took" }, duration(log.result.ms))),
      log.cut && h("p", { class: "note" }, "Only the end of the output is shown."),
      h("pre", { class: "output", tabindex: 0, role: "region", "aria-label": `Output of ${log.command}` }, log.output || "no output")));
  }

  function drawChecks() {
    const number = selected ?? newest();
    const select = (next) => go(name, "checks", next);
    const strip = heatStrip(detail, number, select);
    const logs = h("div", null);
    const columns = panel.querySelector(".scroller")?.scrollLeft;
    const hadFocus = panel.contains(document.activeElement) && document.activeElement.dataset.number;
    panel.replaceChildren(h("h2", null, "Checks in each iteration"), strip, h("p", { class: "legend" },
      h("span", { class: "heat good sample", "aria-hidden": "true" }), "green ", h("span", { class: "heat bad sample", "aria-hidden": "true" }, "✕"), "red ",
      h("span", { class: "heat doubt sample", "aria-hidden": "true" }, "!"), "green, but not by the original tests ",
      h("span", { class: "heat none sample", "aria-hidden": "true" }, "·"), "not run"), logs);
    if (strip.classList.contains("scroller")) strip.scrollLeft = columns ?? strip.scrollWidth;
    if (hadFocus) panel.querySelector(`button[data-number="${CSS.escape(hadFocus)}"]`)?.focus();
    if (detail.iterations.length === 0 && detail.preflight.length === 0) return;
    getJson(iterationPath(number)).then((texts) => {
      logs.replaceChildren(h("h2", null, number === 0 ? "Before the first iteration" : `Iteration ${number}`), ...checkLogs(texts.checks));
    }, () => {});
  }

  function drawChanges() {
    const path = selected === null ? `${loopPath(name)}/diff` : `${iterationPath(selected)}/diff`;
    show(() => getJson(path), (diff) => [h("h2", null, selected === null ? "Changes since the start" : `Changes of iteration ${selected}`), diffView(diff)]);
  }

  function drawPrompt() {
    if (newest() === 0) {
      panel.replaceChildren(h("h2", null, "Task"), h("pre", { class: "output", tabindex: 0, role: "region", "aria-label": "Task" }, detail.task ?? ""));
      return;
    }
    const number = current();
    show(() => getJson(iterationPath(number)), (texts) => [
      h("h2", null, `Prompt of iteration ${number}`),
      texts.prompt?.cut && h("p", { class: "note" }, "The prompt is cut."),
      h("pre", { class: "output prompt", tabindex: 0, role: "region", "aria-label": "Prompt" }, texts.prompt?.text ?? "This iteration's prompt was not saved."),
    ]);
  }

  function drawNotes() {
    show(() => getJson(`${loopPath(name)}/history`), ({ notes, notes_omitted: omitted }) => [
      h("h2", null, "Notes"),
      notes.length === 0 && h("p", { class: "empty" }, "No notes: neither the agent nor you have written any."),
      notes.length > 0 && h("ol", { class: "notes" }, notes.toReversed().map((note) => {
        const author = { agent: "Agent", question: "The agent asks", user: "You" }[note.author];
        return h("li", { class: `written ${note.author}` },
          h("p", { class: "by" }, h("b", null, author), " ", note.iteration > 0 && h("a", { href: `#/loop/${encodeURIComponent(name)}/activity/${note.iteration}` }, `iteration ${note.iteration}`),
            " ", h("time", null, when(note.at_ms))),
          h("div", { class: "note-text" }, marked(note.text)));
      })),
      omitted > 0 && h("p", { class: "note" }, `${plural(omitted, "earlier note")} not shown.`),
    ]);
  }

  /** Adds what happened between the iterations: rests, crashes, requests. */
  function drawEvents(box) {
    getJson(`${loopPath(name)}/history`).then(({ events, events_omitted: omitted }) => {
      const isOpen = box.querySelector("details")?.open ?? false;
      box.replaceChildren(h("details", { class: "file", open: isOpen }, h("summary", null, "All events", h("span", { class: "took" }, plural(events.length + omitted, "line"))),
        omitted > 0 ? h("p", { class: "note" }, `${plural(omitted, "line")} in the middle not shown.`) : "",
        h("ol", { class: "event-list" }, events.toReversed().map((line) => h("li", { class: line.kind }, h("time", null, clock(line.at_ms)), h("span", null, line.text))))));
    }, () => {});
  }

  function drawTimeline() {
    const events = h("div", null, panel.querySelector(".event-list")?.closest("details") ?? "");
    const select = (number) => go(name, "activity", number);
    const rows = detail.iterations.slice(-400).reverse().map((one) => {
      const ran = one.checks.filter(Boolean);
      const red = one.checks.find((check) => check && !check.green);
      const commit = one.commits.find((each) => each.commit);
      const what = one.error ?? red?.line ?? commit?.subject ?? one.note ?? "";
      return h("tr", { class: one.failed ? "bad" : null },
        h("th", { scope: "row" }, h("a", { href: `#/loop/${encodeURIComponent(name)}/activity/${one.number}` }, one.number)),
        h("td", null, clock(one.started_ms)), h("td", { class: "number" }, one.ms === null ? "running" : duration(one.ms)),
        h("td", { class: "number" }, dollars(one.cost_usd)),
        h("td", { class: "number" }, ran.length === 0 ? "–" : `${ran.filter((check) => check.green).length}/${ran.length}`),
        h("td", null, one.failed ? one.reason ?? one.end : one.claimed ? "claims done" : one.end ?? ""),
        h("td", { class: "said" }, one.touched && h("span", { class: "tag warn" }, "touched guards"), String(what).split("\n")[0].slice(0, 200)));
    });
    panel.replaceChildren(h("h2", null, "Timeline"), h("div", { class: "plots" }, plots(detail, select)),
      detail.iterations_omitted > 0 ? h("p", { class: "note" }, `${plural(detail.iterations_omitted, "earlier iteration")} not shown.`) : "",
      rows.length === 0 ? h("p", { class: "empty" }, "No iteration has started.") :
        h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Iterations" }, h("table", { class: "timeline" },
          h("thead", null, h("tr", null, ["#", "Began", "Took", "Cost", "Green", "End", "What"].map((text) => h("th", { scope: "col" }, text)))),
          h("tbody", null, rows))),
      events);
    drawEvents(events);
  }

  function drawTree() {
    show(() => getJson("loops"), ({ loops }) => {
      const known = new Map(loops.map((row) => [row.name, row]));
      let top = known.get(name);
      for (let steps = 0; top && known.has(top.parent) && steps < 50; steps += 1) top = known.get(top.parent);
      const lines = [];
      const seen = new Set();
      const add = (row, depth) => {
        if (seen.has(row.name) || lines.length > 300) return;
        seen.add(row.name);
        const line = loopLine(row, depth);
        if (row.name === name) line.setAttribute("aria-current", "true");
        lines.push(line);
        for (const child of loops) if (child.parent === row.name) add(child, depth + 1);
      };
      if (top) add(top, 0);
      return [h("h2", null, "Parents and children"),
        lines.length > 1 ? h("ul", { class: "loops" }, lines) : h("p", { class: "empty" }, "No agent of this loop has started another loop.")];
    });
  }

  // ---------------------------------------------------------------- events

  const redraw = coalesce(() => { drawHead(); drawPanel(); });
  getJson(loopPath(name)).then((first) => { control = first.control; drawHead(); }, () => {});
  const close = open(`${loopPath(name)}/events`, {
    loop: (event) => { detail = event; summary = event.summary; redraw(); },
    summary: (event) => { summary = event; redraw(); },
    activity: (event) => {
      if (event.reset || event.iteration !== liveIteration) live.clear();
      liveIteration = event.iteration;
      live.add(event.rows, event.dropped);
      redraw();
    },
    gone: (event) => { panel.replaceChildren(h("p", { class: "empty" }, event.error)); },
  });
  const timer = setInterval(() => {
    for (const element of head.querySelectorAll("time[data-ms]")) element.textContent = age(Number(element.dataset.ms));
  }, 5000);

  return {
    page: "loop",
    name,
    close: () => { close(); clearInterval(timer); },
    /** Shows another tab or iteration of the same loop. */
    update(next) {
      if (next.tab !== tab && isTab(next.tab)) panel.replaceChildren();
      tab = isTab(next.tab) ? next.tab : "activity";
      selected = next.iteration;
      drawTabs();
      drawPanel();
    },
    onkey(event) {
      const number = Number(event.key);
      if (number >= 1 && number <= TABS.length) { go(name, TABS[number - 1][0], selected); return true; }
      if (event.key === "[") { move(-1); return true; }
      if (event.key === "]") { move(1); return true; }
      return false;
    },
  };
}
