// Builds elements. Text is only ever set as text, so that no name or output can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Returns text with `code` and **bold** as elements. */
export function marked(text) {
  const parts = String(text).split(/(`[^`\n]{1,400}`|\*\*[^*\n]{1,400}\*\*)/);
  return parts.map((part, at) => {
    if (at % 2 === 0) return part;
    return part[0] === "`" ? h("code", null, part.slice(1, -1)) : h("strong", null, part.slice(2, -2));
  });
}

/** Text for screen readers only. */
export function spoken(text) {
  return h("span", { class: "hidden" }, text);
}

/** Calls `work` soon, but at most every `interval` milliseconds, however often it is asked to. */
export function coalesce(work, interval = 250) {
  let timer = null;
  let last = 0;
  return () => {
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, Math.max(0, interval - (performance.now() - last)));
  };
}

const tooltip = document.getElementById("tooltip");

/** Shows a text next to the element until the tooltip is hidden. */
export function showTooltip(element, text) {
  tooltip.textContent = text;
  tooltip.hidden = false;
  const box = element.getBoundingClientRect();
  const own = tooltip.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 8);
  const above = box.top - own.height - 8;
  tooltip.style.left = `${Math.max(8, left)}px`;
  tooltip.style.top = `${above > 8 ? above : box.bottom + 8}px`;
}

/** Shows `text()` next to the element while the pointer is over it or it has the focus. */
export function withTooltip(element, text) {
  const show = () => showTooltip(element, text());
  // In SVG, some browsers let the tab key reach everything that listens for the focus.
  if (element instanceof SVGElement && !element.hasAttribute("tabindex")) element.setAttribute("tabindex", "-1");
  const hide = () => { tooltip.hidden = true; };
  element.addEventListener("pointerenter", show);
  element.addEventListener("pointerleave", hide);
  element.addEventListener("focus", show);
  element.addEventListener("blur", hide);
  return element;
}

export function hideTooltip() {
  tooltip.hidden = true;
}

/** Says something to screen readers. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
