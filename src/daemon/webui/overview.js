// The overview: totals, shares of roles, the allocation of each agent, and task states over time.

import { html, useMemo, useState } from "./vendor/preact-htm.js";
import { compare, count, duration, percent, stateKind } from "./format.js";
import { link } from "./route.js";
import { countStates } from "./history.js";
import { CellMap, TimePlot } from "./plots.js";
import { Answer, Bar, Choice, Empty, Figure, Heading, Section, Totals, useAnswer, useStore } from "./ui.js";

const SPANS = [
  ["900", "15 minutes"],
  ["3600", "1 hour"],
  ["21600", "6 hours"],
  ["86400", "1 day"],
];

/** The number of tasks by kind of state; `states` has pairs of a state and a number of tasks. */
function kinds(states) {
  const counts = { pending: 0, running: 0, done: 0, stopped: 0, bad: 0 };
  for (const [state, tasks] of states) counts[stateKind(state)] += tasks;
  return counts;
}

/** The pairs of `kinds` of the tasks from the event stream. */
function* statesOf(tasks) {
  for (const task of tasks) yield [task.state, 1];
}

/**
 * The numbers of tasks by kind, and of frameworks: once the state has arrived they follow its events, and before they
 * are as in the answer `overview`.
 */
function useCounts(overview) {
  const store = useStore();
  const live = useMemo(
    () => store.ready && kinds(statesOf(store.tasks.values())),
    [store, store.ready, store.tasksVersion],
  );
  if (!store.ready) return { tasks: kinds(Object.entries(overview.tasks)), frameworks: overview.frameworks };
  const frameworks = [...store.frameworks.values()].filter((one) => !one.completed);
  const connected = frameworks.filter((one) => one.connected).length;
  return { tasks: live, frameworks: { registered: frameworks.length, connected } };
}

export function Overview() {
  const { ready } = useStore();
  const answer = useAnswer("GET_OVERVIEW");
  // While there is neither, the notice above says that the state is loading, or that it cannot be loaded.
  if (!answer.data) return html`<${Heading} title="Overview" />${ready && html`<${Answer} answer=${answer} />`}`;
  return html`<${Heading} title="Overview" /><${Figures} overview=${answer.data} />
    <div class="columns">
      <${Section} title="Roles" note="dominant share, and the mark at the fair share"><${Shares} /><//>
      <${Section} title="Agents" note="dominant share allocated"><${Agents} shares=${answer.data.agent_shares} /><//>
    </div>
    ${ready && html`<${History} />`}`;
}

function Figures({ overview }) {
  const { tasks, frameworks } = useCounts(overview);
  const { registered, active } = overview.agents;
  return html`<div class="figures">
      <${Figure} name="Agents" href="#/agents" value=${count(registered)}
        note=${active < registered ? `${count(registered - active)} get no offers` : "all get offers"} />
      <${Figure} name="Frameworks" href="#/frameworks" value=${count(frameworks.registered)}
        note="${count(frameworks.connected)} connected" />
      <${Figure} name="Running tasks" href="#/tasks?state=running" value=${count(tasks.running)}
        note="${count(tasks.pending)} pending" />
      <${Figure} name="Failed or lost" href="#/tasks?state=bad" value=${count(tasks.bad)}
        note="of ${count(tasks.bad + tasks.done + tasks.stopped)} known ends" />
    </div>
    <${Section} title="Resources"><${Totals} ...${overview.resources} empty="No agent has registered." /><//>`;
}

/** The roles with the largest shares. */
function Shares() {
  const answer = useAnswer("GET_FAIRNESS");
  return html`<${Answer} answer=${answer}>${({ roles }) => {
    const sorted = [...roles].sort((a, b) => b.share - a.share || b.fair_share - a.fair_share).slice(0, 12);
    if (sorted.length === 0) return html`<${Empty}>No role has frameworks.<//>`;
    return html`<div class="shares">${sorted.map(
      ({ role, share, fair_share: fair }) => html`
      <a href=${link("roles", role)} title="${role}: ${percent(share)}, fair would be ${percent(fair)}">${role}</a>
      <${Bar} share=${share} mark=${fair} label="${role}: share ${percent(share)}, fair share ${percent(fair)}" />
      <span>${percent(share)}</span>`,
    )}</div>
      ${roles.length > sorted.length && html`<p><a href="#/roles">All ${count(roles.length)} roles</a></p>`}`;
  }}<//>`;
}

function Agents({ shares }) {
  const store = useStore();
  // Before the state has arrived the ids stand for the names.
  const items = useMemo(
    () =>
      shares
        .map(({ agent_id: id, active, share }) => {
          const name = store.agentName(id.value);
          return { key: id.value, name, share, off: !active, title: `${name}: ${percent(share)}` };
        })
        .sort((a, b) => compare(a.name, b.name)),
    [shares, store.ready],
  );
  if (items.length === 0) return html`<${Empty}>No agent has registered.<//>`;
  return html`<${CellMap} items=${items} label="Allocation of ${count(items.length)}
    agents, which the page Agents lists"
    onPick=${(id) => (location.hash = link("agents", id))} />`;
}

function History() {
  const store = useStore();
  const [span, setSpan] = useState("900");
  // At most once a second: the plot moves with time.
  const now = Math.floor(Date.now() / 1000);
  const { times, counts, step } = useMemo(
    () => countStates(store.tasks.values(), Number(span), now),
    [store.tasksVersion, span, now],
  );
  const series = (names) => Object.entries(names).map(([kind, name]) => ({ kind, name, values: counts[kind] }));
  const choice = html`<${Choice} value=${span} label="Time span" options=${SPANS} onChange=${setSpan} />`;
  return html`<section class="panel" aria-label="Tasks over time">
    <h2>Tasks over time <small>from the task statuses that the master retains</small>${choice}</h2>
    <div class="columns">
      <div><h3>Active at a time</h3><${TimePlot} label="Running and pending tasks over time" times=${times}
        series=${series({ running: "running", pending: "pending" })} /></div>
      <div><h3>Ended, each ${duration(step)}</h3><${TimePlot} label="Ended tasks over time" times=${times} bars
        series=${series({ done: "finished", stopped: "killed", bad: "failed or lost" })} /></div>
    </div>
  </section>`;
}
