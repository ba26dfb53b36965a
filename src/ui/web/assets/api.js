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

/** Shows in the page's heading whether what it shows is new. */
export function showConnection(state, text) {
  if (connection.dataset.state === state && connection.textContent === text) return;
  connection.dataset.state = state;
  connection.textContent = text;
}

/** Opens a stream of events. Returns a function that closes it. */
export function open(path, handlers) {
  const source = new EventSource(`api/${path}`);
  source.addEventListener("open", () => showConnection("live", "live"));
  source.addEventListener("error", () => {
    const isOver = source.readyState === EventSource.CLOSED;
    showConnection(isOver ? "lost" : "waiting", isOver ? "disconnected: run ralph ui again" : "reconnecting");
  });
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  }
  return () => source.close();
}

export const loopPath = (name) => `loops/${encodeURIComponent(name)}`;
