// Formats numbers and times for people, and names the states of loops.

export function dollars(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd > 0 && usd < 0.01) return "<$0.01";
  return `$${usd.toFixed(2)}`;
}

/** Returns the cost of a loop, which may be known only in part. */
export function costOf(row) {
  if (!row.cost_unknown) return dollars(row.cost_usd);
  return row.cost_usd > 0 ? `≥ ${dollars(row.cost_usd)}` : "?";
}

export function count(number) {
  if (number < 10000) return String(number);
  if (number < 1e6) return `${(number / 1e3).toFixed(number < 1e5 ? 1 : 0)}k`;
  return `${(number / 1e6).toFixed(number < 1e7 ? 1 : 0)}M`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 1) return `${Math.round(ms)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${String(Math.floor(seconds % 60)).padStart(2, "0")}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h ${String(minutes % 60).padStart(2, "0")}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

export function age(ms) {
  const seconds = Math.max(0, (Date.now() - ms) / 1000);
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const WHEN = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export const clock = (ms) => CLOCK.format(ms);
export const when = (ms) => WHEN.format(ms);

export function plural(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The mark and the class of each status. The mark's shape differs too, not only its color. */
const STATUS = {
  starting: ["◌", "run"],
  running: ["▶", "run"],
  resting: ["☾", "rest"],
  paused: ["‖", "wait"],
  waiting: ["‖", "wait"],
  blocked: ["?", "ask"],
  disputed: ["!", "ask"],
  crashed: ["↯", "bad"],
  failed: ["✕", "bad"],
  unreadable: ["✕", "bad"],
  stopped: ["■", "off"],
  done: ["✓", "good"],
};

/** Returns what a loop is doing, in one word. */
export function state(row) {
  if (row.status === "running" && row.resting_until_ms) return "resting";
  if (row.outcome === "disputed") return "disputed";
  return row.status;
}

export function look(name) {
  return STATUS[name] ?? ["·", "off"];
}

/** Whether a person has to do something before the loop continues. */
export function needsYou(row) {
  return ["blocked", "disputed", "crashed", "paused", "waiting", "unreadable"].includes(state(row));
}

export function baseName(path) {
  return (path ?? "").split("/").filter(Boolean).pop() ?? "/";
}
