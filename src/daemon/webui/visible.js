// Whether the page is visible. Hidden pages close their connections: a browser opens only six to one server.

/** Time for which a page may be hidden before it closes its connections, in milliseconds. */
const HIDDEN_MAX = 10_000;

const inView = () => !document.hidden;

/** Resolves when the page is in view. */
export async function visible() {
  while (!inView()) {
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

/** Calls `leave` once the page has been out of view for a while; returns a function that ends this. */
export function whenHidden(leave) {
  let timer;
  const changed = () => {
    clearTimeout(timer);
    if (!inView()) timer = setTimeout(leave, HIDDEN_MAX);
  };
  document.addEventListener("visibilitychange", changed);
  changed();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", changed);
  };
}
