// Plots: stacked areas over time as SVG, and a map of cells on a canvas. Data and names of colours are parameters.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { useWidth } from "./ui.js";
import { count } from "./format.js";

const HEIGHT = 150;
const MARGIN = { left: 44, right: 8, top: 8, bottom: 20 };

/** A round number that is not less than `value`. */
function ceiling(value) {
  if (value <= 4) return 4;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((step) => step * size).find((step) => step >= value);
}

const clock = (time) => new Date(time * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/**
 * Stacked areas, or bars, over equal intervals of time. `series` are `{name, kind, values}` from the bottom up, all of
 * the length of `times`, which are the ends of the intervals in seconds since the epoch.
 */
export function TimePlot({ label, times, series, bars = false }) {
  const [reference, width] = useWidth();
  const [at, setAt] = useState(undefined);
  const sums = times.map((_, index) => series.reduce((sum, one) => sum + one.values[index], 0));
  const top = ceiling(Math.max(...sums));
  const inner = { width: Math.max(1, width - MARGIN.left - MARGIN.right), height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const step = inner.width / (bars ? times.length : times.length - 1);
  const x = (index) => MARGIN.left + index * step;
  const y = (value) => MARGIN.top + inner.height * (1 - value / top);
  const below = times.map(() => 0);
  const shapes = series.map(({ kind, values }) => {
    const bottom = [...below];
    values.forEach((value, index) => (below[index] += value));
    const path = bars ? columns(bottom, below, x, y, step) : area(bottom, below, x, y);
    return html`<path class="series ${kind}" d=${path} />`;
  });
  const moved = (event) => {
    const index = (event.clientX - event.currentTarget.getBoundingClientRect().left - MARGIN.left) / step;
    setAt(Math.min(times.length - 1, Math.max(0, bars ? Math.floor(index) : Math.round(index))));
  };
  const shownAt = at ?? times.length - 1;
  const ticks = [0, 0.5, 1].map((part) => Math.round(part * (times.length - 1)));
  return html`<figure class="plot" ref=${reference}>
    <figcaption>${series.map(
      (one) => html`<span class="key"><i class="swatch ${one.kind}"></i>${one.name}
      <b>${count(one.values[shownAt])}</b></span>`,
    )}<span class="when">${clock(times[shownAt])}</span></figcaption>
    ${
      width > 0 &&
      html`<svg width=${width} height=${HEIGHT} role="img" aria-label=${label}
      onPointerMove=${moved} onPointerLeave=${() => setAt(undefined)}>
      ${[0, 0.5, 1].map(
        (part) => html`<g class="axis"><line x1=${MARGIN.left} x2=${width - MARGIN.right}
        y1=${y(top * part)} y2=${y(top * part)} /><text x=${MARGIN.left - 6} y=${y(top * part) + 4}
        text-anchor="end">${count(top * part)}</text></g>`,
      )}
      ${shapes}
      ${
        at !== undefined &&
        html`<line class="cursor" x1=${x(at + (bars ? 0.5 : 0))} x2=${x(at + (bars ? 0.5 : 0))}
        y1=${MARGIN.top} y2=${HEIGHT - MARGIN.bottom} />`
      }
      <g class="axis">${ticks.map(
        (index, place) => html`<text x=${x(index)} y=${HEIGHT - 4}
        text-anchor=${["start", "middle", "end"][place]}>${clock(times[index])}</text>`,
      )}</g>
    </svg>`
    }
  </figure>`;
}

function area(bottom, top, x, y) {
  const there = top.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
  const back = bottom.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).reverse();
  return `M${there.join("L")}L${back.join("L")}Z`;
}

function columns(bottom, top, x, y, step) {
  const gap = step > 4 ? 1 : 0;
  return top
    .map((value, index) =>
      value === bottom[index]
        ? ""
        : `M${x(index).toFixed(1)},${y(bottom[index]).toFixed(1)}V${y(value).toFixed(1)}h${(step - gap).toFixed(1)}V${y(
            bottom[index],
          ).toFixed(1)}Z`,
    )
    .join("");
}

/** Approximate height of a map of many cells, in pixels. */
const MAP = 400;
/** Steps of the map's colours. */
const STEPS = 6;

/** The step of a share: 0 for nothing, the last for everything. */
const stepOf = (share) => (share <= 0 ? 0 : Math.min(STEPS - 1, 1 + Math.floor(share * (STEPS - 1))));

/**
 * A cell for each item, coloured by its share. `items` are `{key, title, share, off}`; `off` cells are hatched.
 * `onPick` is called with the key of a cell that is clicked.
 */
export function CellMap({ label, items, onPick }) {
  const [reference, width] = useWidth();
  const canvas = useRef();
  const legend = useRef();
  const [title, setTitle] = useState("");
  const [theme, setTheme] = useState(0);
  // Cells shrink as their number grows, so that 10,000 fit.
  const size = Math.max(4, Math.min(22, Math.floor(Math.sqrt((Math.max(width, 1) * MAP) / Math.max(1, items.length)))));
  const perRow = Math.max(1, Math.floor(width / size));
  const rows = Math.ceil(items.length / perRow);
  useEffect(() => {
    const changed = () => setTheme((number) => number + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    addEventListener("themechange", changed);
    return () => {
      system.removeEventListener("change", changed);
      removeEventListener("themechange", changed);
    };
  }, []);
  useLayoutEffect(() => {
    if (width > 0) paint(canvas.current, legend.current, items, { size, perRow, rows, width });
  }, [items, width, size, theme]);
  const find = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / size);
    return column < perRow ? items[Math.floor((event.clientY - box.top) / size) * perRow + column] : undefined;
  };
  return html`<figure class="plot" ref=${reference}>
    <figcaption ref=${legend}>0 % ${Array.from(
      { length: STEPS },
      (_, step) => html`
        <i class="swatch heat-${step}"></i>`,
    )}
      100 % <i class="swatch off"></i> no offers <span class="when">${title}</span></figcaption>
    <canvas ref=${canvas} role="img" aria-label=${label} style=${{ width: `${width}px`, height: `${rows * size}px` }}
      onPointerMove=${(event) => setTitle(find(event)?.title ?? "")} onPointerLeave=${() => setTitle("")}
      onClick=${(event) => find(event) && onPick(find(event).key)}></canvas>
  </figure>`;
}

function paint(canvas, legend, items, { size, perRow, rows, width }) {
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = rows * size * scale;
  const colours = [...legend.querySelectorAll(".swatch")].map((swatch) => getComputedStyle(swatch).backgroundColor);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const side = size - (size > 8 ? 2 : 1);
  items.forEach((item, index) => {
    context.fillStyle = item.off ? colours[STEPS] : colours[stepOf(item.share)];
    context.fillRect((index % perRow) * size, Math.floor(index / perRow) * size, side, side);
  });
}
