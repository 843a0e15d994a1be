// Frameworks: the list, and one framework with its tasks and offers, and the reasons for which it has none.

import { html, useMemo } from "./vendor/preact-htm.js";
import { call } from "./api.js";
import { ChangeButton } from "./dialog.js";
import { amounts, amountsText, count, dateTime, duration, hasEnded, megabytes, number, webAddress } from "./format.js";
import { link, setQuery, useRoute } from "./route.js";
import { Table, shown, useSettled } from "./table.js";
import {
  Badge,
  Choice,
  Empty,
  Facts,
  Filter,
  Heading,
  Id,
  OutLink,
  Section,
  Since,
  useAnswer,
  useStore,
} from "./ui.js";
import { Explanation } from "./explain.js";
import { OfferTable } from "./offers.js";
import { TaskTable } from "./tasks.js";

function condition(framework) {
  if (framework.completed) return ["done", "completed"];
  if (!framework.connected) return ["bad", "disconnected"];
  return framework.active ? ["running", "active"] : ["stopped", "inactive"];
}

const Condition = ({ framework }) => {
  const [kind, word] = condition(framework);
  return html`<${Badge} kind=${kind}>${word}<//>`;
};

const COLUMNS = [
  {
    name: "name",
    title: "Name",
    value: ({ framework }) => framework.name,
    cell: ({ framework }) => html`<a href=${link("frameworks", framework.id)}>${framework.name || framework.id}</a>`,
  },
  {
    name: "state",
    title: "State",
    width: "8rem",
    value: ({ framework }) => condition(framework)[1],
    cell: ({ framework }) => html`<${Condition} framework=${framework} />`,
  },
  {
    name: "roles",
    title: "Roles",
    width: "16%",
    minor: true,
    value: ({ framework }) => framework.roles.join(", "),
    cell: ({ framework }) => framework.roles.join(", "),
  },
  {
    name: "user",
    title: "User",
    width: "6rem",
    minor: true,
    value: ({ framework }) => framework.user,
    cell: ({ framework }) => framework.user,
  },
  {
    name: "tasks",
    title: "Tasks",
    width: "5rem",
    numeric: true,
    value: ({ tasks }) => tasks,
    cell: ({ tasks }) => count(tasks),
  },
  {
    name: "cpus",
    title: "cpus",
    width: "5rem",
    numeric: true,
    value: ({ used }) => used.cpus ?? 0,
    cell: ({ used }) => number(used.cpus ?? 0),
  },
  {
    name: "mem",
    title: "mem",
    width: "6.5rem",
    numeric: true,
    minor: true,
    value: ({ used }) => used.mem ?? 0,
    cell: ({ used }) => megabytes(used.mem ?? 0),
  },
  {
    name: "offers",
    title: "Offers",
    width: "5rem",
    numeric: true,
    minor: true,
    value: ({ framework }) => framework.offers.length,
    cell: ({ framework }) => count(framework.offers.length),
  },
  {
    name: "registered",
    title: "Registered",
    width: "7rem",
    numeric: true,
    minor: true,
    value: ({ framework }) => framework.registered ?? 0,
    cell: ({ framework }) => html`<${Since} at=${framework.registered} />`,
  },
];

/** Active tasks by framework. */
function tasksByFramework(tasks) {
  const counts = new Map();
  for (const { framework, state } of tasks)
    if (!hasEnded(state)) counts.set(framework, (counts.get(framework) ?? 0) + 1);
  return counts;
}

export function FrameworksPage({ segments }) {
  return segments[0] ? html`<${FrameworkPage} id=${segments[0]} />` : html`<${FrameworkList} />`;
}

function FrameworkList() {
  const store = useStore();
  useAnswer("GET_FRAMEWORKS");
  const { query } = useRoute();
  const [text, which] = [query.get("q") ?? "", query.get("which") ?? ""];
  const wanted = useSettled(text.toLowerCase());
  const counts = useMemo(() => tasksByFramework(store.tasks.values()), [store.tasksVersion]);
  const all = [...store.frameworks.values()];
  const rows = all
    .filter(
      (one) =>
        (which === "all" || one.completed === (which === "completed")) &&
        [one.name, one.id, one.user, one.principal, ...one.roles].join(" ").toLowerCase().includes(wanted),
    )
    .map((framework) => ({ framework, tasks: counts.get(framework.id) ?? 0, used: amounts(framework.allocated) }));
  return html`<${Heading} title="Frameworks"><span class="count">${shown(rows.length, all.length)}</span>
      <${Choice} label="Which frameworks" value=${which} options=${[
        ["", "registered"],
        ["completed", "completed"],
        ["all", "all"],
      ]} onChange=${(value) => setQuery("which", value)} />
      <${Filter} label="Filter by name, id, role, user" value=${text} onInput=${(value) => setQuery("q", value)} /><//>
    <${Table} label="Frameworks" columns=${COLUMNS} rows=${rows} rowKey=${({ framework }) => framework.id}
      sort=${{ name: "cpus", descending: true }} empty="There are no such frameworks." />`;
}

function FrameworkPage({ id }) {
  const store = useStore();
  useAnswer("GET_FRAMEWORKS");
  const framework = store.frameworks.get(id);
  const tasks = useMemo(
    () => [...store.tasks.values()].filter((task) => task.framework === id),
    [store.tasksVersion, id],
  );
  const above = html`<a href="#/frameworks">Frameworks</a>`;
  if (!framework) {
    return html`<${Heading} title="Framework" above=${above} /><p><${Id} value=${id} /></p>
      <${Empty}>${store.ready ? "The master does not know this framework." : "Loading…"}<//>`;
  }
  const teardown = () => call("TEARDOWN", { framework_id: { value: id } }).then(() => store.refresh());
  const active = tasks.filter((task) => !hasEnded(task.state)).length;
  return html`<${Heading} title=${framework.name || id} above=${above}><${Condition} framework=${framework} />
      ${webAddress(framework.url) && html`<${OutLink} href=${framework.url}>Its own page<//>`}
      ${
        !framework.completed &&
        html`<${ChangeButton} label="Tear down" danger title="Tear down ${framework.name}?"
        text="All of its ${count(active)} active tasks are killed, and the framework can never register again."
        act=${teardown} />`
      }<//>
    <${Section} title="About"><${Facts} facts=${[
      ["id", html`<${Id} value=${id} />`],
      ["roles", framework.roles.map((role) => html`<a href=${link("roles", role)}>${role}</a> `)],
      ["user", framework.user],
      ["principal", framework.principal],
      ["host", framework.host],
      ["registered", dateTime(framework.registered)],
      ["unregistered", framework.unregistered && dateTime(framework.unregistered)],
      ["failover timeout", framework.failover ? duration(framework.failover) : "none"],
      ["allocated", amountsText(amounts(framework.allocated))],
      ["offered", amountsText(amounts(framework.offered))],
      ["capabilities", framework.capabilities.join(", ").toLowerCase().replaceAll("_", " ")],
    ]} /><//>
    <${Section} title="Tasks" note=${count(tasks.length)}><${TaskTable} tasks=${tasks} without="framework" /><//>
    ${
      !framework.completed &&
      html`
      <${Section} title="Offers" note=${count(framework.offers.length)}><${OfferTable} offers=${framework.offers}
        empty="It holds no offer." /><//>
      <${Section} title="Why it has no more offers"><${Explanation} framework=${id} /><//>`
    }`;
}
