// Talks to the server that served this page.

export async function getJson(path) {
  const response = await fetch(`api/${path}`, { credentials: "same-origin" });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body;
}

export async function post(path, text) {
  const response = await fetch(`api/${path}`, { method: "POST", credentials: "same-origin", body: text ?? "" });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body.message ?? "";
}

const connection = document.getElementById("connection");

function show(state, text) {
  if (connection.dataset.state === state) return;
  connection.dataset.state = state;
  connection.textContent = text;
}

/** Opens a stream of events. Returns a function that closes it. */
export function open(path, handlers) {
  const source = new EventSource(`api/${path}`);
  source.addEventListener("open", () => show("live", "live"));
  source.addEventListener("error", () => {
    const isOver = source.readyState === EventSource.CLOSED;
    show(isOver ? "lost" : "waiting", isOver ? "disconnected: run ralph ui again" : "reconnecting");
  });
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  }
  return () => source.close();
}

export const loopPath = (name) => `loops/${encodeURIComponent(name)}`;
