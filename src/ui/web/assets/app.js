// Chooses the view by the address, and passes keys to it.

import { hideTooltip } from "./dom.js";
import { isTab, loopPage } from "./loop.js";
import { overview } from "./overview.js";
import { statsPage } from "./stats.js";

const main = document.getElementById("main");
const help = document.getElementById("help");
let view = null;

function parse() {
  const [page, name, tab, iteration] = location.hash.replace(/^#\/?/, "").split("/");
  if (page === "stats") return { page, by: name, hours: tab };
  if (page !== "loop" || !name) return { page: "overview" };
  const number = /^\d+$/.test(iteration ?? "") ? Number(iteration) : null;
  let decoded = name;
  try { decoded = decodeURIComponent(name); } catch { /* shown as it is */ }
  return { page: "loop", name: decoded, tab: isTab(tab) ? tab : "activity", iteration: number };
}

function go(name, tab, iteration) {
  location.hash = `#/loop/${encodeURIComponent(name)}/${tab}${iteration === null ? "" : `/${iteration}`}`;
}

function show() {
  if (location.hash === "#main") return;
  const route = parse();
  hideTooltip();
  for (const link of document.querySelectorAll(".views a")) {
    if ((link.hash === "#/stats") === (route.page === "stats")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view?.page === route.page && view.name === route.name && view.update) {
    view.update(route);
    return;
  }
  const isFirst = view === null;
  view?.close();
  document.title = { loop: `${route.name} – ralph`, stats: "Statistics – ralph" }[route.page] ?? "ralph";
  view = { loop: () => loopPage(main, route.name, route, go), stats: () => statsPage(main, route), overview: () => overview(main) }[route.page]();
  scrollTo(0, 0);
  if (!isFirst) main.focus({ preventScroll: true });
}

addEventListener("hashchange", show);
document.getElementById("help-button").addEventListener("click", () => help.showModal());
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("scroll", hideTooltip, { passive: true });
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target.closest?.("input, select, textarea")) return;
  if (event.key === "Escape") hideTooltip();
  if (event.key === "?") { help.showModal(); event.preventDefault(); return; }
  if (event.key === "s") { location.hash = "#/stats"; return; }
  if (event.key === "u") { location.hash = "#/"; return; }
  if (view?.onkey(event)) event.preventDefault();
});
show();
