// The frame around every page: navigation, search, theme, log-in, and the state of the connection.
// The pages are parameters.

import { html, render, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { call, credentials, logIn, logOut, read, user, whenUnauthorized } from "./api.js";
import { useRoute } from "./route.js";
import { DialogHost } from "./dialog.js";

/** The light, dark or system's colours. */
function ThemeButton() {
  const [name, setName] = useState(theme.chosen());
  const sign = { system: "◐", light: "○", dark: "●" }[name];
  return html`<button type="button" class="quiet" onClick=${() => setName(theme.next())}
    aria-label="Colour theme: ${name}" title="Colour theme: ${name}"><span aria-hidden="true">${sign}</span></button>`;
}

/** The search field; a slash moves the focus there. */
function Search({ label }) {
  const field = useRef();
  const { segments, query } = useRoute();
  const isSearch = segments[0] === "search";
  useEffect(() => {
    const pressed = (event) => {
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      field.current.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const search = (event) => {
    event.preventDefault();
    const text = field.current.value.trim();
    if (text) location.hash = `#/search?${new URLSearchParams({ q: text })}`;
  };
  return html`<form role="search" onSubmit=${search}>
    <input ref=${field} type="search" placeholder="${label}  ( / )" aria-label=${label} spellcheck="false"
      autocomplete="off" value=${isSearch ? query.get("q") : ""} />
  </form>`;
}

/** The log-in form. `accepted` is called when the name and the password are valid. */
function LogIn({ accepted }) {
  const [error, setError] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    const { name, password } = Object.fromEntries(new FormData(event.target));
    if (`${name}${password}`.includes(":")) {
      setError("A principal or a password that contains a colon cannot be used.");
      return;
    }
    logIn(name, password);
    try {
      // One endpoint of each realm, either of which may be the protected one.
      await Promise.all([call("GET_VERSION"), read("/system/stats.json")]);
    } catch (failure) {
      if (failure.status === 401) logOut();
      // Status 403 means that the log-in itself is valid.
      if (failure.status !== 403) {
        setError(failure.status === 401 ? "The principal or the password is wrong." : failure.message);
        return;
      }
    }
    accepted();
  };
  return html`<main class="login"><form onSubmit=${submit}>
    <h1><img src="assets/icon.svg" alt="" /> tepui</h1>
    <p>${location.host} requires a principal of its credentials file.</p>
    <label>Principal<input name="name" autocomplete="username" required autofocus /></label>
    <label>Password<input name="password" type="password" autocomplete="current-password" required /></label>
    ${error && html`<p class="failure" role="alert">${error}</p>`}
    <button type="submit" class="primary">Log in</button>
    <p class="note">Until TLS is set up in front of it, the password is readable on the network.</p>
  </form></main>`;
}

const isCurrent = (item, first) => (item.route ?? item.title.toLowerCase()) === (first ?? "");

/**
 * The frame around a page. `pages` are `{title, route, page}`; a page that is not in the navigation is `hidden` and may
 * name the route of its `parent`. `title` and `notice` are above the content, which is left out while there is none,
 * `isEmpty`, unless the page is shown `early`.
 */
export function Shell({ pages, title, notice, searchLabel, isEmpty = false }) {
  const { segments, query } = useRoute();
  const found = pages.find((item) => isCurrent(item, segments[0]));
  const main = useRef();
  useEffect(() => scrollTo(0, 0), [segments.join("/")]);
  const content = found
    ? html`<${found.page} key=${segments.join("/")} segments=${segments.slice(1)} query=${query} />`
    : html`<h1>There is no such page</h1><p><a href="#/">Overview</a></p>`;
  const name = user();
  const leave = () => {
    logOut();
    location.reload();
  };
  const skip = (event) => {
    event.preventDefault();
    main.current.focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="mark" href="#/"><img src="assets/icon.svg" alt="" /><b>tepui</b></a>
      <span class="title">${title}</span>
      ${searchLabel && html`<${Search} label=${searchLabel} />`}
      <div class="end">
        ${
          name &&
          html`<span class="user">${name}</span>
          <button type="button" class="quiet" onClick=${leave}>Log out</button>`
        }
        <${ThemeButton} />
      </div>
    </header>
    <nav aria-label="Pages">${pages
      .filter((item) => !item.hidden)
      .map(
        (item) => html`
      <a
          href="#/${item.route ?? item.title.toLowerCase()}"
          aria-current=${isCurrent(item, found?.parent ?? segments[0]) ? "page" : undefined}>${item.title}</a>`,
      )}
    </nav>
    <main id="main" tabindex="-1" ref=${main}>
      ${notice}
      ${isEmpty && found && !found.early ? html`<h1>${found.title}</h1>` : content}
    </main>
    <${DialogHost} />`;
}

/** Shows the log-in form while the daemon requires a user, and otherwise the element that `start` returns. */
export function run(start) {
  const show = () => render(html`<${Root} start=${start} />`, document.body);
  show();
}

function Root({ start }) {
  const [session, setSession] = useState({ number: 0, isOpen: true });
  useEffect(() => whenUnauthorized(() => setSession((old) => ({ ...old, isOpen: false }))), []);
  if (!session.isOpen) {
    return html`<${LogIn} accepted=${() => setSession(({ number }) => ({ number: number + 1, isOpen: true }))} />`;
  }
  return html`<div class="shell" key=${session.number + credentials()}>${start()}</div>`;
}
