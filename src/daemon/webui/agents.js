// Agents: the list, and one agent with its tasks and the operator's actions.

import { html, useMemo } from "./vendor/preact-htm.js";
import { call } from "./api.js";
import { ChangeButton } from "./dialog.js";
import { agentPage, amount, amounts, count, dateTime, hasEnded, ports } from "./format.js";
import { link, setQuery, useRoute } from "./route.js";
import { Table, shown, useSettled } from "./table.js";
import { Badge, Empty, Facts, Filter, Heading, Id, Section, Since, Totals, Use, useAnswer, useStore } from "./ui.js";
import { TaskTable } from "./tasks.js";

/** The state of an agent, as a kind of colour and a word. */
function condition(agent) {
  const draining = agent.drain?.state;
  if (draining) return ["stopped", draining.toLowerCase()];
  if (agent.deactivated) return ["stopped", "deactivated"];
  return agent.active ? ["running", "active"] : ["bad", "disconnected"];
}

const Condition = ({ agent }) => {
  const [kind, word] = condition(agent);
  return html`<${Badge} kind=${kind}>${word}<//>`;
};

/** The value of an attribute as text. */
export const attribute = (one) =>
  one.text?.value ??
  one.scalar?.value ??
  one.ranges?.range?.map(({ begin, end }) => `${begin}-${end}`).join(",") ??
  one.set?.item?.join(",") ??
  "";

const searchable = (agent) =>
  [agent.name, agent.id, ...agent.attributes.map((one) => `${one.name}:${attribute(one)}`), condition(agent)[1]]
    .join(" ")
    .toLowerCase();

/** A column that compares the allocation with the total. */
const use = (name, minor) => ({
  name,
  title: name,
  minor,
  bars: true,
  numeric: true,
  value: ({ used, total }) => (total[name] ? (used[name] ?? 0) / total[name] : 0),
  cell: ({ used, total }) => html`<${Use} used=${used[name] ?? 0} total=${total[name] ?? 0}
    text="${amount(name, used[name] ?? 0)} of ${amount(name, total[name] ?? 0)} ${name}" />`,
});

const COLUMNS = [
  {
    name: "host",
    title: "Host",
    value: ({ agent }) => agent.name,
    cell: ({ agent }) => html`<a href=${link("agents", agent.id)}>${agent.name}</a>`,
  },
  {
    name: "state",
    title: "State",
    width: "8rem",
    value: ({ agent }) => condition(agent)[1],
    cell: ({ agent }) => html`<${Condition} agent=${agent} />`,
  },
  {
    name: "tasks",
    title: "Tasks",
    width: "5rem",
    numeric: true,
    value: ({ tasks }) => tasks,
    cell: ({ tasks }) => count(tasks),
  },
  use("cpus"),
  use("mem", true),
  use("disk", true),
  {
    name: "registered",
    title: "Registered",
    width: "7rem",
    minor: true,
    numeric: true,
    value: ({ agent }) => agent.registered ?? 0,
    cell: ({ agent }) => html`<${Since} at=${agent.registered} />`,
  },
  {
    name: "version",
    title: "Version",
    width: "5.5rem",
    minor: true,
    value: ({ agent }) => agent.version,
    cell: ({ agent }) => agent.version,
  },
];

/** Active tasks by agent. */
function tasksByAgent(tasks) {
  const counts = new Map();
  for (const { agent, state } of tasks) if (!hasEnded(state)) counts.set(agent, (counts.get(agent) ?? 0) + 1);
  return counts;
}

export function AgentsPage({ segments }) {
  return segments[0] ? html`<${AgentPage} id=${segments[0]} />` : html`<${AgentList} />`;
}

function AgentList() {
  const store = useStore();
  useAnswer("GET_AGENTS");
  const text = useRoute().query.get("q") ?? "";
  const wanted = useSettled(text.toLowerCase());
  const counts = useMemo(() => tasksByAgent(store.tasks.values()), [store.tasksVersion]);
  const rows = useMemo(
    () =>
      [...store.agents.values()]
        .filter((agent) => searchable(agent).includes(wanted))
        .map((agent) => ({
          agent,
          tasks: counts.get(agent.id) ?? 0,
          used: amounts(agent.allocated),
          total: amounts(agent.total),
        })),
    [store.agentsVersion, counts, wanted],
  );
  return html`<${Heading} title="Agents"><span class="count">${shown(rows.length, store.agents.size)}</span>
      <${Filter} label="Filter by host, id, attribute" value=${text} onInput=${(value) => setQuery("q", value)} /><//>
    <${Table} label="Agents" columns=${COLUMNS} rows=${rows} rowKey=${({ agent }) => agent.id} sort=${{ name: "host" }}
      empty=${wanted ? "No agent matches the filter." : "No agent has registered."} />`;
}

/** The operator's actions for an agent. */
function Actions({ agent }) {
  const store = useStore();
  const change = (type, body = {}) =>
    call(type, { agent_id: { value: agent.id }, ...body }).then(() => store.refresh());
  const drain = ({ grace, gone }) =>
    change("DRAIN_AGENT", {
      ...(grace && { max_grace_period: { seconds: Number(grace) } }),
      mark_gone: gone,
    });
  return html`
    ${
      agent.deactivated &&
      html`<${ChangeButton} label="Reactivate" title="Reactivate ${agent.name}?"
      text="The agent gets offers again." act=${() => change("REACTIVATE_AGENT")} />`
    }
    ${
      !agent.deactivated &&
      html`<${ChangeButton} label="Deactivate" title="Deactivate ${agent.name}?"
      text="The agent gets no offers until it is reactivated. Its tasks continue."
      act=${() => change("DEACTIVATE_AGENT")} />`
    }
    <${ChangeButton} label="Drain" danger title="Drain ${agent.name}?" act=${drain}
      text="The agent gets no offers, and its tasks are killed. It stays deactivated until it is reactivated."
      fields=${[
        {
          name: "grace",
          label: "Longest grace period in seconds",
          type: "number",
          hint: "Empty: the grace period of each task.",
        },
        { name: "gone", label: "Mark the agent gone when it is drained: it can never reregister", type: "checkbox" },
      ]} />`;
}

function AgentPage({ id }) {
  const store = useStore();
  useAnswer("GET_AGENTS");
  const agent = store.agents.get(id);
  const tasks = useMemo(() => [...store.tasks.values()].filter((task) => task.agent === id), [store.tasksVersion, id]);
  const above = html`<a href="#/agents">Agents</a>`;
  if (!agent) {
    return html`<${Heading} title="Agent" above=${above} /><p><${Id} value=${id} /></p>
      <${Empty}>${store.ready ? "The master does not know this agent, or it is unreachable." : "Loading…"}<//>
      ${tasks.length > 0 && html`<${Section} title="Tasks"><${TaskTable} tasks=${tasks} without="agent" /><//>`}`;
  }
  const [total, used, offered] = [agent.total, agent.allocated, agent.offered].map(amounts);
  return html`<${Heading} title=${agent.name} above=${above}><${Condition} agent=${agent} /><${Actions}
    agent=${agent} /><//>
    <${Section} title="About"><${Facts} facts=${[
      ["id", html`<${Id} value=${agent.id} />`],
      ["own page", html`<a href=${agentPage(agent, "")}>${agent.host}:${agent.port}</a>`],
      ["registered", dateTime(agent.registered)],
      ["reregistered", agent.reregistered && dateTime(agent.reregistered)],
      ["version", agent.version],
      ["attributes", agent.attributes.map((one) => `${one.name}: ${attribute(one)}`).join(", ")],
      ["region", agent.domain?.region?.name],
      ["zone", agent.domain?.zone?.name],
      ["ports", ports(agent.total)],
      [
        "drain",
        agent.drain && `${agent.drain.state.toLowerCase()}${agent.drain.config?.mark_gone ? ", then gone" : ""}`,
      ],
      ["drain started", agent.drainStart && dateTime(agent.drainStart)],
    ]} /><//>
    <${Section} title="Resources"><${Totals} total=${total} allocated=${used} offered=${offered} /><//>
    <${Section} title="Tasks" note=${count(tasks.length)}><${TaskTable} tasks=${tasks} without="agent" /><//>`;
}
