// A table that sorts and shows only the rows in view, so that 100,000 rows cost as much as 50.
// It does not depend on the contents of the cells.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { Empty } from "./ui.js";
import { compare, count } from "./format.js";

/** Height of a row in pixels, as in style.css. */
const ROW = 32;
/** Number of rows above and below the view that are also rendered. */
const MARGIN = 12;
/** Maximum number of rows of a table that is rendered completely. */
const WHOLE = 150;

const inOrder = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b));

/** The rows in the order of a column; `null` keeps the given order. */
function useSorted(rows, columns, sort) {
  return useMemo(() => {
    const column = columns.find((one) => one.name === sort.name);
    if (!column?.value) return rows;
    // Each key is computed once.
    const keyed = rows.map((row) => [column.value(row), row]);
    const sign = sort.descending ? -1 : 1;
    return keyed.sort((a, b) => sign * inOrder(a[0], b[0])).map(([, row]) => row);
  }, [rows, sort.name, sort.descending]);
}

/** The first row to render and the one after the last, by the position of the table in the window. */
function useWindow(body, length) {
  const [range, setRange] = useState([0, WHOLE]);
  useLayoutEffect(() => {
    let frame;
    const measure = () => {
      frame = undefined;
      if (!body.current) return;
      const top = -body.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
      const end = Math.ceil((top + innerHeight) / ROW) + MARGIN;
      setRange((old) => (old[0] === first && old[1] === end ? old : [first, end]));
    };
    const later = () => (frame ??= requestAnimationFrame(measure));
    measure();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
    };
  }, [length > WHOLE]);
  if (length <= WHOLE) return [0, length];
  const first = Math.min(range[0], Math.max(0, length - 1));
  return [first, Math.min(length, Math.max(range[1], first + 1))];
}

/**
 * A sortable table. A column is `{name, title, cell(row), value(row), width, numeric, minor, bars}`: without `value` it
 * does not sort, `minor` ones are left out on narrow screens, one with `bars` has their width, and one without `width`
 * takes the remaining width.
 */
export function Table({ label, columns, rows, rowKey, sort: initial = {}, empty = "There are none." }) {
  const [sort, setSort] = useState(initial);
  const body = useRef();
  const sorted = useSorted(rows, columns, sort);
  const [first, end] = useWindow(body, sorted.length);
  if (rows.length === 0) return html`<${Empty}>${empty}<//>`;
  const order = (column) => () =>
    setSort((old) =>
      old.name === column.name
        ? { name: column.name, descending: !old.descending }
        : { name: column.name, descending: column.numeric },
    );
  return html`<table class="rows" aria-label=${label} aria-rowcount=${sorted.length + 1}>
    <thead><tr>${columns.map(
      (column) => html`<${Head} key=${column.name} ...${{ column, sort }}
      onClick=${order(column)} />`,
    )}</tr></thead>
    <tbody ref=${body}>
      ${first > 0 && html`<${Gap} key="above" rows=${first} columns=${columns.length} />`}
      ${sorted.slice(first, end).map(
        (row, index) => html`
        <tr key=${rowKey(row)} aria-rowindex=${first + index + 2}>${columns.map(
          (column) => html`
          <td class=${classes(column)}>${column.cell(row)}</td>`,
        )}</tr>`,
      )}
      ${end < sorted.length && html`<${Gap} key="below" rows=${sorted.length - end} columns=${columns.length} />`}
    </tbody>
  </table>`;
}

const classes = (column) => ["numeric", "minor", "bars"].filter((name) => column[name]).join(" ");

function Head({ column, sort, onClick }) {
  const isSorted = sort.name === column.name;
  const direction = isSorted ? (sort.descending ? "descending" : "ascending") : undefined;
  const style = column.width && { width: column.width };
  return html`<th scope="col" class=${classes(column)} style=${style} aria-sort=${direction}>
    ${
      column.value
        ? html`<button type="button" onClick=${onClick}>${column.title}<span class="arrow" aria-hidden="true">
      ${isSorted ? (sort.descending ? "↓" : "↑") : ""}</span></button>`
        : column.title
    }
  </th>`;
}

/** The space of rows that are not rendered. */
const Gap = ({ rows, columns }) => html`<tr class="gap" aria-hidden="true">
  <td colspan=${columns} style=${{ height: `${rows * ROW}px` }}></td></tr>`;

/** Delays a value until it has not changed for a moment, so that typing does not filter at each key. */
export function useSettled(value, delay = 120) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), delay);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** The number of rows that match a filter: `12 of 3,400`. */
export const shown = (rows, all) => (rows === all ? count(all) : `${count(rows)} of ${count(all)}`);
