// Offers that frameworks hold, and operations such as reservations that agents apply.

import { html, useMemo } from "./vendor/preact-htm.js";
import { amounts, amountsText, count, ports, stateName } from "./format.js";
import { link, setQuery, useRoute } from "./route.js";
import { Table } from "./table.js";
import { Answer, Badge, Filter, Heading, useAnswer, useStore } from "./ui.js";

const columns = (store) => [
  {
    name: "id",
    title: "Offer",
    value: (offer) => offer.id.value,
    // The part before it is the same for all offers of a master.
    cell: (offer) => html`<code title=${offer.id.value}>${offer.id.value.split("-").pop()}</code>`,
  },
  {
    name: "framework",
    title: "Framework",
    width: "18%",
    value: (offer) => store.frameworkName(offer.framework_id.value),
    cell: (offer) =>
      html`<a href=${link("frameworks", offer.framework_id.value)}>${store.frameworkName(
        offer.framework_id.value,
      )}</a>`,
  },
  {
    name: "role",
    title: "Role",
    width: "8rem",
    minor: true,
    value: (offer) => offer.allocation_info?.role ?? "",
    cell: (offer) => offer.allocation_info?.role,
  },
  {
    name: "agent",
    title: "Agent",
    width: "18%",
    minor: true,
    value: (offer) => store.agentName(offer.agent_id.value),
    cell: (offer) => html`<a href=${link("agents", offer.agent_id.value)}>${store.agentName(offer.agent_id.value)}</a>`,
  },
  {
    name: "resources",
    title: "Resources",
    width: "30%",
    cell: (offer) =>
      html`<span title="ports ${ports(offer.resources)}">${amountsText(amounts(offer.resources))}</span>`,
  },
];

export function OfferTable({ offers, empty = "No framework holds an offer." }) {
  const store = useStore();
  const shown = useMemo(() => columns(store), [store]);
  return html`<${Table} label="Offers" columns=${shown} rows=${offers} rowKey=${(offer) => offer.id.value}
    sort=${{ name: "framework" }} empty=${empty} />`;
}

export function OffersPage() {
  const store = useStore();
  const answer = useAnswer("GET_FRAMEWORKS");
  const text = useRoute().query.get("q") ?? "";
  return html`<${Answer} answer=${answer}>${({ frameworks }) => {
    const all = frameworks.flatMap((framework) => framework.offers ?? []);
    const fits = (offer) =>
      [
        offer.id.value,
        store.agentName(offer.agent_id.value),
        offer.allocation_info?.role,
        store.frameworkName(offer.framework_id.value),
      ]
        .join(" ")
        .toLowerCase()
        .includes(text.toLowerCase());
    return html`<${Heading} title="Offers"><span class="count">${count(all.length)}</span>
        <${Filter} label="Filter by framework, agent, role" value=${text}
          onInput=${(value) => setQuery("q", value)} /><//>
      <${OfferTable} offers=${all.filter(fits)} />`;
  }}<//>`;
}

const KINDS = { OPERATION_FINISHED: "done", OPERATION_PENDING: "pending", OPERATION_RECOVERING: "pending" };

const operationColumns = (store) => [
  {
    name: "type",
    title: "Operation",
    width: "12rem",
    value: ({ info }) => info.type,
    cell: ({ info }) => info.type.replaceAll("_", " ").toLowerCase(),
  },
  {
    name: "state",
    title: "State",
    width: "9rem",
    value: (one) => one.latest_status.state,
    cell: ({ latest_status: { state } }) =>
      html`<${Badge} kind=${KINDS[state] ?? "bad"}>${stateName(state.replace("OPERATION_", ""))}<//>`,
  },
  {
    name: "agent",
    title: "Agent",
    width: "20%",
    minor: true,
    value: (one) => store.agentName(one.agent_id?.value),
    cell: ({ agent_id: id }) => id && html`<a href=${link("agents", id.value)}>${store.agentName(id.value)}</a>`,
  },
  {
    name: "framework",
    title: "By",
    width: "18%",
    minor: true,
    value: (one) => (one.framework_id ? store.frameworkName(one.framework_id.value) : "an operator"),
    cell: ({ framework_id: id }) =>
      id ? html`<a href=${link("frameworks", id.value)}>${store.frameworkName(id.value)}</a>` : "an operator",
  },
  {
    name: "message",
    title: "Message",
    cell: ({ latest_status: { message } }) => html`<span title=${message}>${message}</span>`,
  },
];

export function OperationsPage() {
  const store = useStore();
  const columns = useMemo(() => operationColumns(store), [store]);
  return html`<${Heading} title="Operations" />
    <${Answer} answer=${useAnswer("GET_OPERATIONS")}>${({ operations = [] }) => html`
      <${Table} label="Operations" columns=${columns} rows=${operations} rowKey=${(one) => one.uuid?.value}
        empty="No operation is under way." />`}<//>`;
}
