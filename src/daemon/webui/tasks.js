// Tasks: the list, a table that other pages use, and one task with its history and the reason for which it waits.

import { html, useMemo } from "./vendor/preact-htm.js";
import { call } from "./api.js";
import { ChangeButton } from "./dialog.js";
import {
  agentPage,
  amounts,
  amountsText,
  dateTime,
  duration,
  hasEnded,
  number,
  megabytes,
  ports,
  stateKind,
  stateName,
} from "./format.js";
import { link, setQuery, useRoute } from "./route.js";
import { Table, shown, useSettled } from "./table.js";
import { Choice, Empty, Facts, Filter, Heading, Id, Section, Since, State, useStore } from "./ui.js";
import { Explanation } from "./explain.js";

const KINDS = [
  ["", "All states"],
  ["active", "active"],
  ["pending", "pending"],
  ["running", "running"],
  ["done", "finished"],
  ["stopped", "killed"],
  ["bad", "failed, lost, unreachable"],
];

const isOfKind = (task, kind) => !kind || (kind === "active" ? !hasEnded(task.state) : stateKind(task.state) === kind);

const held = (task, name) => amounts(task.resources)[name] ?? 0;

/** The columns; names of agents and frameworks come from the store. */
const columns = (store) => [
  {
    name: "id",
    title: "Task",
    value: (task) => task.id,
    cell: (task) => html`<a href=${link("tasks", task.framework, task.id)} title=${task.name}>${task.id}</a>`,
  },
  {
    name: "state",
    title: "State",
    width: "8rem",
    value: (task) => stateName(task.state),
    cell: (task) => html`<${State} state=${task.state} />`,
  },
  {
    name: "framework",
    title: "Framework",
    width: "14%",
    minor: true,
    value: (task) => store.frameworkName(task.framework),
    cell: (task) => html`<a href=${link("frameworks", task.framework)}>${store.frameworkName(task.framework)}</a>`,
  },
  {
    name: "agent",
    title: "Agent",
    width: "14%",
    minor: true,
    value: (task) => store.agentName(task.agent),
    cell: (task) => html`<a href=${link("agents", task.agent)}>${store.agentName(task.agent)}</a>`,
  },
  { name: "role", title: "Role", width: "7rem", minor: true, value: (task) => task.role, cell: (task) => task.role },
  {
    name: "cpus",
    title: "cpus",
    width: "4.5rem",
    numeric: true,
    minor: true,
    value: (task) => held(task, "cpus"),
    cell: (task) => number(held(task, "cpus")),
  },
  {
    name: "mem",
    title: "mem",
    width: "6rem",
    numeric: true,
    minor: true,
    value: (task) => held(task, "mem"),
    cell: (task) => megabytes(held(task, "mem")),
  },
  {
    name: "updated",
    title: "Updated",
    width: "6.5rem",
    numeric: true,
    value: (task) => task.updated,
    cell: (task) => html`<${Since} at=${task.updated} />`,
  },
];

/** A table of tasks, without the column that is the same for all. */
export function TaskTable({ tasks, without, empty }) {
  const store = useStore();
  const shownColumns = useMemo(() => columns(store).filter((column) => column.name !== without), [store, without]);
  return html`<${Table} label="Tasks" columns=${shownColumns} rows=${tasks}
    sort=${{ name: "updated", descending: true }}
    rowKey=${(task) => `${task.framework}/${task.id}`} empty=${empty ?? "There are no tasks."} />`;
}

export function TasksPage({ segments: [framework, task] }) {
  return task ? html`<${TaskPage} framework=${framework} id=${task} />` : html`<${TaskList} />`;
}

function TaskList() {
  const store = useStore();
  const { query } = useRoute();
  const [text, kind] = [query.get("q") ?? "", query.get("state") ?? ""];
  const wanted = useSettled(text.toLowerCase());
  const tasks = useMemo(
    () =>
      [...store.tasks.values()].filter(
        (task) =>
          isOfKind(task, kind) &&
          (!wanted ||
            `${task.id} ${task.name} ${task.role} ${store.frameworkName(task.framework)} ${store.agentName(task.agent)}`
              .toLowerCase()
              .includes(wanted)),
      ),
    [store.tasksVersion, wanted, kind],
  );
  return html`<${Heading} title="Tasks"><span class="count">${shown(tasks.length, store.tasks.size)}</span>
      <${Choice} label="State" value=${kind} options=${KINDS} onChange=${(value) => setQuery("state", value)} />
      <${Filter} label="Filter by id, name, framework, agent" value=${text}
        onInput=${(value) => setQuery("q", value)} /><//>
    <${TaskTable} tasks=${tasks} empty=${wanted || kind ? "No task matches the filter." : "There are no tasks."} />`;
}

/** The reason for which a task does not run yet. */
function Waiting({ task }) {
  if (task.state === "TASK_STAGING") {
    return html`<p>The agent has the task, and its executor has not reported it yet. The agent may still fetch files or
      pull an image: its page shows the sandbox.</p>`;
  }
  return html`<p>The executor has the task and has not reported that it runs.</p>`;
}

function TaskPage({ framework, id }) {
  const store = useStore();
  const task = store.task(framework, id);
  const name = store.frameworkName(framework);
  const above = html`<a href="#/tasks">Tasks</a><span> / </span><a href=${link("frameworks", framework)}>${name}</a>`;
  if (!task) {
    return html`<${Heading} title=${id} above=${above} />
      <${Empty}>${
        store.ready ? "The master does not know this task. It may have been forgotten after its end." : "Loading…"
      }<//>`;
  }
  const agent = store.agents.get(task.agent);
  const own = agent && agentPage(agent, link("tasks", framework, id).slice(2));
  const kill = () => call("KILL_TASK", { framework_id: { value: framework }, task_id: { value: id } });
  return html`<${Heading} title=${task.id} above=${above}><${State} state=${task.state} />
      ${
        !hasEnded(task.state) &&
        html`<${ChangeButton} label="Kill" danger title="Kill ${task.id}?"
        text="The task ends as if its framework had killed it: by its kill policy, with the state TASK_KILLED."
        act=${kill} />`
      }
      ${own && html`<a class="button primary" href=${own}>Sandbox and output</a>`}<//>
    <${Section} title="About"><${Facts} facts=${[
      ["id", html`<${Id} value=${task.id} />`],
      ["name", task.name !== task.id && task.name],
      ["framework", html`<a href=${link("frameworks", framework)}>${store.frameworkName(framework)}</a>`],
      ["agent", html`<a href=${link("agents", task.agent)}>${store.agentName(task.agent)}</a>`],
      ["executor", task.executor !== task.id && html`<${Id} value=${task.executor} />`],
      ["role", task.role],
      ["user", task.user],
      ["resources", amountsText(amounts(task.resources))],
      ["ports", ports(task.resources)],
      ["labels", task.labels.map(({ key, value }) => (value === undefined ? key : `${key}=${value}`)).join(", ")],
    ].filter(([, value]) => value)} />
    ${
      own
        ? html`<p class="note">The sandbox and the output while it is written are on the page of its agent,
      which may ask for a log-in of its own.</p>`
        : html`<p class="note">The agent is not connected, so its sandbox cannot be shown.</p>`
    }<//>
    <${Section} title="History"><${History} task=${task} /><//>
    ${
      !hasEnded(task.state) &&
      task.state !== "TASK_RUNNING" &&
      html`<${Section} title="Why it does not run">
      <${Waiting} task=${task} /><//><${Section} title="Offers of its framework">
      <${Explanation} framework=${framework} role=${task.role} /><//>`
    }`;
}

const statusColumns = [
  { name: "state", title: "State", width: "9rem", cell: ({ state }) => html`<${State} state=${state} />` },
  { name: "time", title: "Time", width: "13rem", cell: ({ time }) => dateTime(time) },
  {
    name: "lasted",
    title: "Lasted",
    width: "6rem",
    numeric: true,
    minor: true,
    cell: ({ lasted }) => (lasted === undefined ? "" : duration(lasted)),
  },
  {
    name: "reason",
    title: "Reason",
    width: "24%",
    minor: true,
    cell: ({ reason, source }) => html`<span
    title=${source}>${(reason ?? "")
      .replace(/^REASON_/, "")
      .replaceAll("_", " ")
      .toLowerCase()}</span>`,
  },
  {
    name: "message",
    title: "Message",
    minor: true,
    cell: ({ message, healthy }) => html`<span title=${message}>
    ${healthy !== undefined && (healthy ? "healthy. " : "unhealthy. ")}${message}</span>`,
  },
];

function History({ task }) {
  const rows = task.statuses.map((status, index) => {
    const next = task.statuses[index + 1]?.time ?? (hasEnded(status.state) ? undefined : Date.now() / 1000);
    return { ...status, index, lasted: next && status.time ? next - status.time : undefined };
  });
  const last = task.statuses.at(-1)?.message;
  return html`<${Table} label="Status updates" columns=${statusColumns} rows=${rows} rowKey=${(row) => row.index}
      empty="No status update has arrived: the agent has not reported the task." />
    ${last && html`<pre class="message">${last}</pre>`}`;
}
