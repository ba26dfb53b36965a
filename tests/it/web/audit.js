// Checks what a page can be checked for without a person: names, contrast, structure and overflow.
// Returns a list of findings. A phone's browser makes the window as wide as the page, so its width is an argument.
((WIDTH) => {
  const findings = [];
  const describe = (element) => element.outerHTML.slice(0, 140);
  const report = (what, element) => { if (findings.length < 20) findings.push(`${what}: ${describe(element)}`); };
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });

  // ---------------------------------------------------------------- structure
  if (document.documentElement.scrollWidth > WIDTH) {
    const wide = [...document.querySelectorAll("main *")].filter((element) => element.getBoundingClientRect().right > WIDTH + 1 &&
      !element.closest(".scroller, .tabs, .activity-box, .output"));
    findings.push(`the page is ${document.documentElement.scrollWidth} pixels wide: ${wide.slice(0, 3).map(describe).join(" | ")}`);
  }
  if (!document.documentElement.lang || !document.title) findings.push("the document has no language or title");
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  if (twice.length > 0) findings.push(`ids occur twice: ${twice}`);
  if (document.querySelectorAll("h1").length !== 1) findings.push("there is not one h1");
  if (!document.querySelector("main")) findings.push("there is no main");
  let level = 1;
  for (const heading of document.querySelectorAll("main h1, main h2, main h3")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) report("a heading's level is skipped", heading);
    level = next;
  }
  for (const list of document.querySelectorAll("ul, ol")) {
    if ([...list.children].some((child) => child.tagName !== "LI")) report("a list has other children", list);
  }
  for (const cell of document.querySelectorAll("th")) if (!cell.scope) report("a heading of a table has no scope", cell);
  for (const element of document.querySelectorAll("[aria-controls], [aria-labelledby], label[for]")) {
    for (const name of ["aria-controls", "aria-labelledby", "for"]) {
      const id = element.getAttribute(name);
      if (id && !document.getElementById(id)) report(`${name} names nothing`, element);
    }
  }
  for (const tabs of document.querySelectorAll("[role=tablist]")) {
    const all = [...tabs.querySelectorAll("[role=tab]")];
    if (all.filter((tab) => tab.getAttribute("aria-selected") === "true").length !== 1) report("not one tab is selected", tabs);
    if (all.filter((tab) => tab.tabIndex === 0).length !== 1) report("not one tab can be reached", tabs);
  }

  // ---------------------------------------------------------------- names
  function nameOf(element) {
    const labels = [...(element.labels ?? [])].map((label) => label.textContent).join(" ");
    const by = (element.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
    return (element.getAttribute("aria-label") || by.trim() || labels || element.getAttribute("alt") || element.textContent || element.title || "").trim();
  }
  const named = "a[href], button, input, select, textarea, summary, [tabindex='0'], [role=img], [role=region], [role=log], [role=tab], progress, dialog";
  for (const element of document.querySelectorAll(named)) if (!nameOf(element)) report("it has no name", element);
  for (const image of document.querySelectorAll("img")) if (!image.hasAttribute("alt")) report("an image has no alt", image);
  for (const element of document.querySelectorAll("[aria-hidden=true] a, [aria-hidden=true] button")) report("it is hidden and can have the focus", element);
  for (const element of document.querySelectorAll("button, select, input, summary")) {
    const box = element.getBoundingClientRect();
    if (isShown(element) && (box.width < 24 || box.height < 24)) report("it is smaller than 24 pixels", element);
  }

  // ---------------------------------------------------------------- contrast
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  function rgba(color) {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      known.set(color, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(color);
  }
  const over = (top, below) => top.slice(0, 3).map((value, at) => value * (top[3] / 255) + below[at] * (1 - top[3] / 255));
  function backOf(element) {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 255) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  }
  function light(color) {
    const [r, g, b] = color.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function check(element, color, size, isBold) {
    const back = backOf(element);
    const front = over(rgba(color), back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const needed = size >= 24 || (isBold && size >= 18.66) ? 3 : 4.5;
    if (ratio < needed) report(`contrast ${ratio.toFixed(2)} of ${needed}`, element);
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !isShown(element) || element.closest("script, title, :disabled, .hidden, option, canvas")) continue;
    const style = getComputedStyle(element);
    const isSvg = element instanceof SVGElement;
    check(element, isSvg ? style.fill : style.color, parseFloat(style.fontSize), Number(style.fontWeight) >= 700);
  }
  for (const input of document.querySelectorAll("input[placeholder]")) {
    if (isShown(input)) check(input, getComputedStyle(input, "::placeholder").color, 15, false);
  }
  return findings;
})
