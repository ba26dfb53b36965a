// A patch, file by file.

import { h, spoken } from "./dom.js";
import { plural } from "./format.js";

/** Lines of one file that are in the page at first. */
const LINES_MAX = 600;
/** Files that are open at first. */
const OPEN_LINES = 300;

export function diffView(diff) {
  if (diff.files.length === 0) return h("p", { class: "empty" }, diff.error ?? "Nothing changed.");
  const added = diff.files.reduce((all, file) => all + file.added, 0);
  const removed = diff.files.reduce((all, file) => all + file.removed, 0);
  let budget = OPEN_LINES;
  const files = diff.files.map((file, at) => {
    const lines = file.patch.split("\n").length;
    const isOpen = at === 0 || budget > 0;
    budget -= lines;
    return fileView(file, isOpen, at);
  });
  return h("div", { class: "diff" },
    h("div", { class: "diff-head" },
      h("p", null, plural(diff.files.length, "file"), " ", counts(added, removed)),
      diff.error && h("p", { class: "note" }, `Only the files are listed: ${diff.error}`),
      diff.files.length > 1 && h("nav", { "aria-label": "Changed files" }, h("ul", { class: "files" },
        diff.files.map((file, at) => h("li", null, h("a", { href: `#file-${at}`, onclick: (event) => {
          event.preventDefault();
          const target = document.getElementById(`file-${at}`);
          target.open = true;
          target.querySelector("summary").focus();
          target.scrollIntoView({ block: "start" });
        } }, file.path), " ", counts(file.added, file.removed)))))),
    files,
    diff.omitted > 0 && h("p", { class: "note" }, `${plural(diff.omitted, "more file")} not shown; ralph diff shows them.`));
}

function counts(added, removed) {
  return h("span", { class: "counts" },
    h("span", { class: "plus" }, spoken("added "), `+${added}`), " ", h("span", { class: "minus" }, spoken("removed "), `−${removed}`));
}

function fileView(file, isOpen, at) {
  const body = h("div", { class: "patch-box" });
  const details = h("details", { class: "file", id: `file-${at}`, open: isOpen, ontoggle: () => { if (details.open) fill(); } },
    h("summary", null, h("code", null, file.path), counts(file.added, file.removed)), body);
  let isFilled = false;
  function fill() {
    if (isFilled) return;
    isFilled = true;
    body.append(...patchView(file));
  }
  if (isOpen) fill();
  return details;
}

function patchView(file) {
  const lines = file.patch.replace(/\n$/, "").split("\n");
  const first = lines.findIndex((line) => line.startsWith("@@"));
  if (first < 0) return [h("p", { class: "note" }, file.cut ? "Too long to show here." : lines.slice(1).join("\n") || "No text changed.")];
  const table = h("tbody", null);
  let before = 0;
  let after = 0;
  const draw = (line) => {
    const range = line.match(/^@@ -(\d+)(?:,\d+)? \+(\d+)/);
    if (range) {
      [before, after] = [Number(range[1]), Number(range[2])];
      return h("tr", { class: "hunk" }, h("td", { colspan: 3 }, line));
    }
    const mark = line[0];
    const kind = { "+": "plus", "-": "minus", "\\": "hunk" }[mark] ?? "same";
    const cells = [
      h("td", { class: "line-number" }, kind === "plus" || kind === "hunk" ? "" : before++),
      h("td", { class: "line-number" }, kind === "minus" || kind === "hunk" ? "" : after++),
      h("td", { class: "code" }, kind === "plus" ? spoken("added ") : kind === "minus" ? spoken("removed ") : null,
        h("span", { class: "sign", "aria-hidden": "true" }, kind === "plus" ? "+" : kind === "minus" ? "−" : " "), line.slice(1)),
    ];
    return h("tr", { class: kind }, cells);
  };
  let next = first;
  const more = h("button", { type: "button", class: "more", onclick: add });
  function add() {
    const end = Math.min(lines.length, next + LINES_MAX);
    table.append(...lines.slice(next, end).map(draw));
    next = end;
    more.hidden = next >= lines.length;
    more.textContent = `Show ${Math.min(LINES_MAX, lines.length - next)} more lines`;
  }
  add();
  return [
    h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": `Changes of ${file.path}` }, h("table", { class: "patch" }, table)),
    more,
    file.cut && h("p", { class: "note" }, "This file's changes are cut; ralph diff shows all of them."),
  ].filter(Boolean);
}
