// Elements that all pages use: hooks of the store, badges, bars, definition lists, empty and failed states, copies.
// They do not depend on masters or agents.

import {
  createContext,
  html,
  useContext,
  useEffect,
  useLayoutEffect,
  useReducer,
  useRef,
  useState,
} from "./vendor/preact-htm.js";
import { ago, amount, dateTime, percent, stateKind, stateName, webAddress } from "./format.js";

/** The store that the components below read. */
export const StoreContext = createContext(undefined);

/** The store; the component is rendered again after changes. */
export function useStore() {
  const store = useContext(StoreContext);
  const [, render] = useReducer((count) => count + 1, 0);
  useEffect(() => store.listen(render), [store]);
  return store;
}

/** The answer to an operator call, requested again after changes: `{data, error}`. */
export const useAnswer = (type, body) => useStore().answer(type, body);

/** Sets the document's title while the component is shown. */
export function useTitle(title) {
  useEffect(() => {
    document.title = title ? `${title} · tepui` : "tepui";
  }, [title]);
}

/** The width of an element in pixels, 0 before it is known. Returns the reference to set, and the width. */
export function useWidth() {
  const reference = useRef();
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(reference.current);
    return () => observer.disconnect();
  }, []);
  return [reference, width];
}

/** The heading of a page, with actions at its right. */
export function Heading({ title, children, above }) {
  useTitle(title);
  return html`<header class="heading">
    <div>${above && html`<p class="above">${above}</p>`}<h1>${title}</h1></div>
    <div class="actions">${children}</div>
  </header>`;
}

export const Section = ({ title, note, children }) => html`<section class="panel" aria-label=${title}>
  <h2>${title}${note !== undefined && html` <small>${note}</small>`}</h2>${children}
</section>`;

/** A word with a coloured mark. The colour adds no information to the word. */
export const Badge = ({ kind, children }) => html`<span class="badge ${kind}">${children}</span>`;

export const State = ({ state }) => html`<${Badge} kind=${stateKind(state)}>${stateName(state)}<//>`;

/** An instant as its age, with the date as a tooltip. */
export const Since = ({ at }) => html`<time title=${dateTime(at)}>${ago(at)}</time>`;

/** A share of a total as a bar, with an optional mark at the fair share. */
export function Bar({ share, mark, label }) {
  const width = (value) => `${Math.min(100, Math.max(0, (value || 0) * 100)).toFixed(2)}%`;
  return html`<div class="bar" role="img" aria-label=${label ?? percent(share)}>
    <div class="fill" style=${{ width: width(share) }}></div>
    ${mark !== undefined && html`<div class="mark" style=${{ left: width(mark) }}></div>`}
  </div>`;
}

/** A bar with its text, for table cells. */
export const Use = ({ used, total, text }) => html`<div class="use" title="${text}">
  <${Bar} share=${total > 0 ? used / total : 0} label=${text} /><span>${total > 0 ? percent(used / total) : "–"}</span>
</div>`;

/** Names and values; those without a value are left out. */
export const Facts = ({ facts }) => html`<dl class="facts">
  ${facts
    .filter(([, value]) => value !== undefined && value !== "")
    .map(
      ([name, value]) => html`
    <div><dt>${name}</dt><dd>${value}</dd></div>`,
    )}
</dl>`;

export const Figure = ({ name, value, note, href }) => html`<div class="figure">
  <span class="name">${href ? html`<a href=${href}>${name}</a>` : name}</span>
  <span class="value">${value}</span><span class="note">${note}</span>
</div>`;

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** The error of a failed call. */
export const Failure = ({ error }) => html`<p class="failure" role="alert">
  ${error.status === 403 ? "You may not see this: the daemon's access control lists do not allow it." : error.message}
</p>`;

/** A call's answer once it has arrived: `children` is a function of it. The last answer stays while calls fail. */
export function Answer({ answer, children }) {
  if (answer.data) return children(answer.data);
  return answer.error ? html`<${Failure} error=${answer.error} />` : html`<p class="empty" role="status">Loading…</p>`;
}

/** An id in a fixed-width font, with a button that copies it. */
export function Id({ value }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(value);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<code class="id">${value}</code>
    <button class="copy" type="button" onClick=${copy} aria-label="Copy ${value}">${
      copied ? "copied" : "copy"
    }</button>`;
}

/** A link to an address that a framework or a task has given. */
export function OutLink({ href, children }) {
  const address = webAddress(href);
  return address
    ? html`<a href=${address} target="_blank" rel="noopener noreferrer">${children}</a>`
    : html`${children}`;
}

/** A text field that filters a list. */
export const Filter = ({ value, label, onInput }) => html`<input class="filter" type="search" value=${value}
  placeholder=${label} aria-label=${label} spellcheck="false" autocomplete="off"
  onInput=${(event) => onInput(event.target.value)} />`;

/** A choice out of a few options, as `[value, label]`. */
export const Choice = ({ value, label, options, onChange }) => html`<select aria-label=${label} value=${value}
  onChange=${(event) => onChange(event.target.value)}>
  ${options.map(([option, text]) => html`<option value=${option} selected=${option === value}>${text}</option>`)}
</select>`;

/** Each resource of a total, with its allocated and offered amounts. */
export function Totals({ total, allocated = {}, offered = {}, empty = "There are none." }) {
  const first = ["cpus", "mem", "disk", "gpus"];
  const names = [...new Set([...first, ...Object.keys(total)])].filter((name) => total[name] > 0);
  if (names.length === 0) return html`<${Empty}>${empty}<//>`;
  return html`<div class="totals">${names.map((name) => {
    const [used, held] = [allocated[name] ?? 0, offered[name] ?? 0];
    const text = `${amount(name, used)} of ${amount(name, total[name])}`;
    return html`<div><div class="line"><b>${name}</b><span>${text}</span><span class="end">${
      held > 0 &&
      html`
      <small>${amount(name, held)} offered · </small>`
    }${percent(used / total[name])}</span></div>
      <${Bar} share=${used / total[name]} label="${name}: ${text}" /></div>`;
  })}</div>`;
}
