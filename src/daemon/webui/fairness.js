// Fairness: the measures of GET_FAIRNESS, shares beside fair shares, and the outcome of each framework's offers.

import { html } from "./vendor/preact-htm.js";
import { ago, amountsText, count, duration, number, percent } from "./format.js";
import { link } from "./route.js";
import { Table } from "./table.js";
import { Answer, Bar, Figure, Heading, Section, useAnswer, useStore } from "./ui.js";

const id = (client) => client.framework_id.value;

const shareColumns = (store) => [
  {
    name: "framework",
    title: "Framework",
    value: (one) => store.frameworkName(id(one)),
    cell: (one) => html`<a href=${link("frameworks", id(one))}>${store.frameworkName(id(one))}</a>`,
  },
  {
    name: "role",
    title: "Role",
    width: "16%",
    minor: true,
    value: (one) => one.role,
    cell: (one) => html`<a href=${link("roles", one.role)}>${one.role}</a>`,
  },
  {
    name: "wants",
    title: "Wants",
    width: "5rem",
    minor: true,
    value: (one) => (one.wants_offers ? "yes" : "no"),
    cell: (one) => (one.wants_offers ? "yes" : "no"),
  },
  {
    name: "share",
    title: "Share",
    bars: true,
    numeric: true,
    value: (one) => one.share,
    cell: (one) => html`<div class="use"><${Bar} share=${one.share} mark=${one.fair_share}
      label="share ${percent(one.share)}, fair ${percent(one.fair_share)}" /><span>${percent(one.share)}</span></div>`,
  },
  {
    name: "fair",
    title: "Fair",
    width: "5.5rem",
    numeric: true,
    value: (one) => one.fair_share,
    cell: (one) => percent(one.fair_share),
  },
  {
    name: "mean",
    title: "Mean share",
    width: "7rem",
    numeric: true,
    minor: true,
    value: (one) => one.share_seconds / one.sampled_seconds || 0,
    cell: (one) => percent(one.share_seconds / one.sampled_seconds),
  },
  {
    name: "lost",
    title: "Mean lost",
    width: "7rem",
    numeric: true,
    minor: true,
    value: (one) => one.lost_share_seconds / one.sampled_seconds || 0,
    cell: (one) => percent(one.lost_share_seconds / one.sampled_seconds),
  },
];

const figure = (name, title, width, value, text = count) => ({
  name,
  title,
  width,
  numeric: true,
  value,
  cell: (one) => text(value(one)),
});

/** Unanswered time in which resources could not be used, by name. */
const idle = (given) =>
  amountsText(Object.fromEntries(Object.entries(given).map(([name, value]) => [`${name}·s`, Math.round(value)])));

const offerColumns = (store) => [
  shareColumns(store)[0],
  { ...shareColumns(store)[1], width: "9%" },
  figure("sent", "Sent", "4.5rem", (one) => one.offers.sent),
  figure("accepted", "Accepted", "5.5rem", (one) => one.offers.accepted),
  figure("declined", "Declined", "5.5rem", (one) => one.offers.declined),
  { ...figure("rescinded", "Rescinded", "6.5rem", (one) => one.offers.rescinded), minor: true },
  { ...figure("timed", "Timed out", "6rem", (one) => one.offers.timed_out), minor: true },
  { ...figure("held", "Longest held", "7rem", (one) => one.holding.longest, duration), minor: true },
  { ...figure("waits", "Longest wait", "7rem", (one) => one.waiting.longest, duration), minor: true },
  {
    name: "now",
    title: "Waits for",
    width: "5.5rem",
    numeric: true,
    minor: true,
    value: (one) => -(one.waiting.since ?? Infinity),
    cell: (one) => (one.waiting.since ? ago(one.waiting.since) : ""),
  },
  {
    name: "unused",
    title: "Offered but unused",
    width: "12%",
    minor: true,
    cell: (one) => html`<span
    title=${idle(one.unused_resource_seconds)}>${idle(one.unused_resource_seconds)}</span>`,
  },
];

export function FairnessPage() {
  const store = useStore();
  const key = (one) => `${id(one)} ${one.role}`;
  return html`<${Heading} title="Fairness" />
    <${Answer} answer=${useAnswer("GET_FAIRNESS")}>${(report) => html`
      <div class="figures">
        <${Figure} name="Jain's index" value=${number(report.jain_index)}
          note="1: shares are proportional to fair shares" />
        <${Figure} name="Relative gap" value=${percent(report.relative_gap)} note="1 − least share ∕ largest share" />
        <${Figure} name="Deviation" value=${percent(report.deviation)} note="largest distance from a fair share" />
        <${Figure} name="Lost share" value=${percent(report.lost_share)} note="largest of a framework" />
        <${Figure} name="Competitors" value=${count(report.competitors)} note="frameworks that want offers" />
      </div>
      <${Section} title="Shares of frameworks" note="dominant share, and the mark at the fair share">
        <${Table} label="Shares of frameworks" columns=${shareColumns(store)} rows=${report.frameworks} rowKey=${key}
          sort=${{ name: "share", descending: true }} empty="There are no frameworks." /><//>
      <${Section} title="Offers" note="since each framework registered">
        <${Table} label="Offers by outcome" columns=${offerColumns(store)} rows=${report.frameworks} rowKey=${key}
          sort=${{ name: "sent", descending: true }} empty="There are no frameworks." /><//>`}<//>`;
}
