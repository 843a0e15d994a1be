// The reasons for which a framework has no offers: the answer to EXPLAIN, as text and by agent.

import { html, useMemo } from "./vendor/preact-htm.js";
import { dateTime, percent } from "./format.js";
import { link, setQuery, useRoute } from "./route.js";
import { Table, useSettled } from "./table.js";
import { Answer, Empty, Filter, Section, useAnswer, useStore } from "./ui.js";

/** The further fields of a reason, as text. */
function detail(agent) {
  switch (agent.reason) {
    case "NOTHING":
      return `would be offered ${agent.would_be_offered}`;
    case "OFFERED":
      return `since ${dateTime(agent.since)}`;
    case "UNHEALTHY":
      return agent.why;
    case "INACTIVE":
      return agent.why?.toLowerCase() ?? "";
    case "TOO_SMALL":
      return `has ${agent.has}`;
    case "HELD":
      return agent.by
        .map((by) => `${by.name} (${by.role}) ${by.in === "OFFER" ? "is offered" : "uses"} ${by.resources}`)
        .join("; ");
    case "RESERVED":
      return agent.roles.join(", ");
    case "LIMIT":
      return `of role ${agent.role}`;
    case "REFUSED":
      return agent.until ? `until ${dateTime(agent.until)}` : "until the next interval";
    case "SET_ASIDE":
      return "withheld for guarantees of other roles";
    default:
      return [agent.lacks ?? ""].flat().join(", ");
  }
}

const COLUMNS = [
  {
    name: "host",
    title: "Agent",
    width: "24%",
    value: (agent) => agent.name,
    cell: (agent) => html`<a href=${link("agents", agent.agent_id.value)}>${agent.name}</a>`,
  },
  {
    name: "reason",
    title: "Reason",
    width: "10rem",
    value: (agent) => agent.reason,
    cell: (agent) => agent.reason.replaceAll("_", " ").toLowerCase(),
  },
  {
    name: "detail",
    title: "Detail",
    cell: (agent) => {
      const text = [detail(agent), windowOf(agent)].filter(Boolean).join("; ");
      return html`<span title=${text}>${text}</span>`;
    },
  },
];

/** The scheduled unavailability of an agent. */
const windowOf = ({ maintenance: window }) => window && `maintenance from ${dateTime(window.start)}`;

function One({ explanation }) {
  const store = useStore();
  // The explanation has host names alone, which several agents may share.
  const agents = useMemo(
    () => explanation.agents.map((agent) => ({ ...agent, name: store.agentName(agent.agent_id.value) })),
    [explanation],
  );
  const order = explanation.order.map(
    (level) =>
      html`<li><b>${level.name}</b> in ${
        level.among || "the cluster"
      }: share ${percent(level.share)}, ${level.before} of ${level.of} before it</li>`,
  );
  return html`<${Section} title="Role ${explanation.role}" note=${
    explanation.wants_offers ? "wants offers" : "wants no offers"
  }>
    <pre class="message">${explanation.text}</pre>
    ${order.length > 0 && html`<h3>Order of allocation</h3><ul>${order}</ul>`}
    <h3>Agents</h3>
    <${Table} label="Reasons by agent" columns=${COLUMNS} rows=${agents} rowKey=${(agent) => agent.agent_id.value}
      sort=${{ name: "reason" }} empty="No agent has registered." />
  <//>`;
}

/** The reasons for which a framework has no offers; with amounts in the field, none that contain them. */
export function Explanation({ framework, role }) {
  const need = useRoute().query.get("need") ?? "";
  const asked = useSettled(need.trim(), 400);
  const answer = useAnswer("EXPLAIN", { framework, ...(role && { role }), ...(asked && { need: asked }) });
  return html`<p><${Filter} label="With at least, as cpus:2;mem:64" value=${need}
    onInput=${(value) => setQuery("need", value)} /></p>
    <${Answer} answer=${answer}>${({ explanations }) =>
      explanations.length === 0
        ? html`<${Empty}>The framework has no roles.<//>`
        : explanations.map((one) => html`<${One} key=${one.role} explanation=${one} />`)}<//>`;
}
