// Executors and tasks of an agent, with their sandboxes, output, and the calls that end their containers.
// They come from the document of the agent's state.

import { html } from "./vendor/preact-htm.js";
import { call } from "./api.js";
import { ChangeButton } from "./dialog.js";
import { amountsText, count, dateTime, hasEnded, number, megabytes } from "./format.js";
import { link } from "./route.js";
import { Log } from "./log.js";
import { Sandbox } from "./sandbox.js";
import { Table } from "./table.js";
import { Badge, Empty, Facts, Heading, Id, Section, State } from "./ui.js";

/** All executors, each with its framework; completed ones last. */
function executorsOf({ frameworks = [], completed_frameworks: gone = [] }) {
  const of = (framework, executors, runs) => (executors ?? []).map((executor) => ({ framework, executor, runs }));
  const all = [...frameworks, ...gone];
  return [
    ...all.flatMap((one) => of(one, one.executors, true)),
    ...all.flatMap((one) => of(one, one.completed_executors, false)),
  ];
}

const tasksOf = (executor) => [
  ...executor.tasks,
  ...executor.queued_tasks.map((task) => ({ statuses: [], ...task })),
  ...executor.completed_tasks,
];

const pathOf = ({ framework, executor }) => link("executors", framework.id, executor.id, executor.container);

const scalars = (given = {}) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => typeof value === "number"));

const executorColumns = [
  {
    name: "id",
    title: "Executor",
    value: ({ executor }) => executor.id,
    cell: (row) => html`<a href=${pathOf(row)} title=${row.executor.name}>${row.executor.id}</a>`,
  },
  {
    name: "framework",
    title: "Framework",
    width: "22%",
    minor: true,
    value: ({ framework }) => framework.name,
    cell: ({ framework }) => html`<span title=${framework.id}>${framework.name}</span>`,
  },
  {
    name: "tasks",
    title: "Tasks",
    width: "5rem",
    numeric: true,
    value: ({ executor }) => tasksOf(executor).length,
    cell: ({ executor }) => count(tasksOf(executor).length),
  },
  {
    name: "cpus",
    title: "cpus",
    width: "5rem",
    numeric: true,
    value: ({ executor }) => executor.resources.cpus,
    cell: ({ executor }) => number(executor.resources.cpus),
  },
  {
    name: "mem",
    title: "mem",
    width: "6.5rem",
    numeric: true,
    minor: true,
    value: ({ executor }) => executor.resources.mem,
    cell: ({ executor }) => megabytes(executor.resources.mem),
  },
  {
    name: "container",
    title: "Container",
    width: "21rem",
    minor: true,
    value: ({ executor }) => executor.container,
    cell: ({ executor }) => html`<code>${executor.container}</code>`,
  },
];

export function ExecutorsPage({ state }) {
  const all = executorsOf(state);
  const [running, ended] = [all.filter((one) => one.runs), all.filter((one) => !one.runs)];
  const table = (rows, label) => html`<${Table} label=${label} columns=${executorColumns} rows=${rows} rowKey=${pathOf}
    sort=${{ name: "id" }} empty="There are none." />`;
  return html`<${Section} title="Executors" note=${count(running.length)}>${table(running, "Executors")}<//>
    ${
      ended.length > 0 &&
      html`<${Section} title="Completed executors" note=${count(ended.length)}>${table(
        ended,
        "Completed executors",
      )}<//>`
    }`;
}

const taskColumns = (framework) => [
  {
    name: "id",
    title: "Task",
    value: (task) => task.id,
    cell: (task) => html`<a href=${link("tasks", framework.id, task.id)} title=${task.name}>${task.id}</a>`,
  },
  {
    name: "state",
    title: "State",
    width: "9rem",
    value: (task) => task.state ?? "queued",
    cell: (task) => (task.state ? html`<${State} state=${task.state} />` : "queued"),
  },
  {
    name: "updated",
    title: "Updated",
    width: "13rem",
    minor: true,
    value: (task) => task.statuses.at(-1)?.timestamp ?? 0,
    cell: (task) => dateTime(task.statuses.at(-1)?.timestamp),
  },
];

/** The button that kills a container. */
function Kill({ container, what }) {
  const value = (id) => ({ value: id.value, ...(id.parent && { parent: value(id.parent) }) });
  return html`<${ChangeButton} label="Kill" danger title="Kill ${what}?"
    text="Its container gets SIGKILL. The framework sees a failed task and may launch another."
    act=${() => call("KILL_CONTAINER", { container_id: value(container), signal: 9 })} />`;
}

export function ExecutorPage({ state, segments: [framework, id, container] }) {
  const fits = (one) =>
    one.framework.id === framework && one.executor.id === id && (!container || one.executor.container === container);
  const found = executorsOf(state).find(fits);
  const above = html`<a href="#/">Executors</a>`;
  if (!found) {
    return html`<${Heading} title=${id ?? "Executor"} above=${above} />
      <${Empty}>The agent does not know this executor. Its sandbox may have been deleted.<//>`;
  }
  const { executor, runs } = found;
  return html`<${Heading} title=${executor.id} above=${above}>
      <${Badge} kind=${runs ? "running" : "done"}>${runs ? "runs" : "completed"}<//>
      ${runs && html`<${Kill} container=${{ value: executor.container }} what=${executor.id} />`}<//>
    <${Section} title="About"><${Facts} facts=${[
      ["framework", `${found.framework.name} (${found.framework.id})`],
      ["container", html`<${Id} value=${executor.container} />`],
      ["type", executor.type?.toLowerCase()],
      ["role", executor.role],
      ["resources", amountsText(scalars(executor.resources))],
      ["sandbox", html`<code>${executor.directory}</code>`],
    ]} /><//>
    <${Section} title="Tasks" note=${count(tasksOf(executor).length)}><${Table} label="Tasks"
      columns=${taskColumns(found.framework)} rows=${tasksOf(executor)} rowKey=${(task) => task.id}
        empty="It has no tasks." /><//>
    <${Output} directory=${executor.directory} />`;
}

/** The sandbox of a task of a pod: below its executor's, in a container of its own. */
function placeOf({ executor }, task) {
  const container = task.statuses.at(-1)?.container_status?.container_id;
  const isNested = Boolean(container?.parent);
  return {
    container: container ?? { value: executor.container },
    directory: isNested ? `${executor.directory}/tasks/${task.id}` : executor.directory,
  };
}

export function TaskPage({ state, segments: [framework, id] }) {
  const holders = executorsOf(state).filter((one) => one.framework.id === framework);
  const found = holders
    .map((holder) => ({ holder, task: tasksOf(holder.executor).find((task) => task.id === id) }))
    .find(({ task }) => task);
  const above = html`<a href="#/">Executors</a>`;
  if (!found) {
    return html`<${Heading} title=${id ?? "Task"} above=${above} />
      <${Empty}>The agent does not know this task. Its sandbox may have been deleted.<//>`;
  }
  const { holder, task } = found;
  const { container, directory } = placeOf(holder, task);
  const mayRun = holder.runs && !hasEnded(task.state);
  const place = html`${above}<span> / </span><a href=${pathOf(holder)}>${holder.executor.id}</a>`;
  return html`<${Heading} title=${task.id} above=${place}>
      ${task.state ? html`<${State} state=${task.state} />` : html`<${Badge} kind="pending">queued<//>`}
      ${mayRun && html`<${Kill} container=${container} what=${task.id} />`}<//>
    <${Section} title="About"><${Facts} facts=${[
      ["name", task.name],
      ["framework", `${holder.framework.name} (${holder.framework.id})`],
      ["role", task.role],
      ["resources", amountsText(scalars(task.resources))],
      ["container", html`<${Id} value=${container.value} />`],
      ["sandbox", html`<code>${directory}</code>`],
    ]} />
    <ol class="states">${task.statuses.map(
      (status) => html`<li><${State} state=${status.state} />
      <time>${dateTime(status.timestamp)}</time></li>`,
    )}</ol><//>
    <${Output} directory=${directory} />`;
}

/** Standard output and error while they are written, and the files of the sandbox. */
const Output = ({ directory }) => html`<div class="columns">
    <${Log} key=${`${directory}/stdout`} path="${directory}/stdout" title="stdout" />
    <${Log} key=${`${directory}/stderr`} path="${directory}/stderr" title="stderr" />
  </div>
  <${Section} title="Sandbox"><${Sandbox} key=${directory} root=${directory} /><//>`;
