// What an agent does: its words and its tools, as rows that can change.

import { h, marked, spoken } from "./dom.js";
import { clock, duration } from "./format.js";

/** Rows in the page; older ones are removed. */
const ROWS_MAX = 400;

export function activityList() {
  const rows = new Map();
  let pending = new Map();
  let frame = null;
  let dropped = 0;
  const note = h("p", { class: "note", hidden: true });
  const list = h("ol", { class: "activity" });
  const box = h("div", { class: "activity-box", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Activity" }, note, list);

  function isAtEnd() {
    return box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  }

  function draw() {
    frame = null;
    const follow = isAtEnd();
    for (const [id, row] of pending) {
      const element = rowView(row);
      const old = rows.get(id);
      if (old) old.replaceWith(element);
      else list.append(element);
      rows.set(id, element);
    }
    pending = new Map();
    for (const [id, element] of rows) {
      if (rows.size <= ROWS_MAX) break;
      element.remove();
      rows.delete(id);
      dropped = Math.max(dropped, 1);
    }
    note.hidden = dropped === 0;
    note.textContent = "Earlier activity is not shown; ralph logs prints all of it.";
    if (follow) box.scrollTop = box.scrollHeight;
  }

  return {
    element: box,
    isEmpty: () => rows.size === 0 && pending.size === 0,
    clear() {
      rows.clear();
      pending = new Map();
      dropped = 0;
      list.replaceChildren();
      note.hidden = true;
    },
    add(changed, count) {
      dropped = Math.max(dropped, count ?? 0);
      for (const row of changed) pending.set(row.id, row);
      // What was not drawn yet and would be removed at once is not drawn at all.
      for (const id of pending.keys()) {
        if (pending.size <= ROWS_MAX) break;
        pending.delete(id);
      }
      frame ??= requestAnimationFrame(draw);
    },
  };
}

const KINDS = {
  thinking: ["…", "thinking"],
  side: ["·", "other output"],
  denied: ["⊘", "denied"],
  retry: ["↻", "retrying"],
  limit: ["!", "near a limit"],
  failed: ["✕", "failed"],
};

function rowView(row) {
  const time = h("time", null, clock(row.at_ms));
  if (row.kind === "tool") {
    const [mark, kind, word] = row.ok === null ? ["▸", "run", "running"] : row.ok ? ["✓", "good", "succeeded"] : ["✕", "bad", "failed"];
    return h("li", { class: "act tool" }, time,
      h("span", { class: `act-mark ${kind}` }, h("span", { "aria-hidden": "true" }, mark), spoken(word)),
      h("div", { class: "act-text" }, h("b", null, row.text), " ", h("code", null, row.about),
        row.ms > 99 && h("span", { class: "took" }, duration(row.ms)),
        row.error && h("p", { class: "why" }, row.error)));
  }
  const [mark, word] = KINDS[row.kind] ?? ["", ""];
  return h("li", { class: `act ${row.kind}` }, time,
    h("span", { class: "act-mark" }, h("span", { "aria-hidden": "true" }, mark), word && spoken(word)),
    h("div", { class: "act-text" }, row.kind === "text" ? marked(row.text.trim()) : row.text.trim()));
}
