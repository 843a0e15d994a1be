// Hash routes such as `#/tasks/FRAMEWORK/TASK?q=text`: reading, writing, and rendering again when they change.
// It does not depend on the pages.

import { useEffect, useState } from "./vendor/preact-htm.js";

/** The parts of the current route: decoded path segments and the query. */
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const segments = path
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { segments, query: new URLSearchParams(query) };
}

/** The link to a route; segments that are undefined are left out. */
export function link(...segments) {
  return `#/${segments
    .filter((part) => part !== undefined)
    .map(encodeURIComponent)
    .join("/")}`;
}

/** Changes a key of the query in place: no step in the history. An empty value removes it. */
export function setQuery(key, value) {
  const { segments, query } = current();
  if (value) query.set(key, value);
  else query.delete(key);
  const text = query.toString();
  history.replaceState(null, "", link(...segments) + (text && `?${text}`));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The current route, as a hook. */
export function useRoute() {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const changed = () => setRoute(current());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
