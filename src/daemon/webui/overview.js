// The overview: totals, shares of roles, the allocation of each agent, and task states over time.

import { html, useMemo, useState } from "./vendor/preact-htm.js";
import { amounts, amountsText, count, dominantShare, duration, percent, stateKind } from "./format.js";
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

/** Sums of the agents' resources: total, allocated and offered. */
function sums(agents) {
  const all = { total: {}, allocated: {}, offered: {} };
  for (const agent of agents) {
    for (const part of Object.keys(all)) {
      for (const [name, value] of Object.entries(amounts(agent[part])))
        all[part][name] = (all[part][name] ?? 0) + value;
    }
  }
  return all;
}

/** How many tasks have each kind of state. */
function kinds(tasks) {
  const counts = { pending: 0, running: 0, done: 0, stopped: 0, bad: 0 };
  for (const task of tasks) counts[stateKind(task.state)]++;
  return counts;
}

export function Overview() {
  const store = useStore();
  useAnswer("GET_AGENTS");
  const agents = [...store.agents.values()];
  const frameworks = [...store.frameworks.values()].filter((one) => !one.completed);
  const counts = useMemo(() => kinds(store.tasks.values()), [store, store.tasksVersion]);
  const all = sums(agents);
  const away = agents.filter((agent) => !agent.active).length;
  return html`<${Heading} title="Overview" />
    <div class="figures">
      <${Figure} name="Agents" href="#/agents" value=${count(agents.length)}
        note=${away ? `${count(away)} get no offers` : "all get offers"} />
      <${Figure} name="Frameworks" href="#/frameworks" value=${count(frameworks.length)}
        note="${count(frameworks.filter((one) => one.connected).length)} connected" />
      <${Figure} name="Running tasks" href="#/tasks?state=running" value=${count(counts.running)}
        note="${count(counts.pending)} pending" />
      <${Figure} name="Failed or lost" href="#/tasks?state=bad" value=${count(counts.bad)}
        note="of ${count(counts.bad + counts.done + counts.stopped)} known ends" />
    </div>
    <${Section} title="Resources"><${Totals} ...${all} empty="No agent has registered." /><//>
    <div class="columns">
      <${Section} title="Roles" note="dominant share, and the mark at the fair share"><${Shares} /><//>
      <${Section} title="Agents" note="dominant share allocated"><${Agents} agents=${agents} /><//>
    </div>
    <${History} />`;
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

function Agents({ agents }) {
  const { agentsVersion } = useStore();
  const items = useMemo(
    () =>
      [...agents]
        .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }))
        .map((agent) => {
          const [used, total] = [amounts(agent.allocated), amounts(agent.total)];
          const share = dominantShare(used, total);
          return {
            key: agent.id,
            share,
            off: !agent.active,
            title: `${agent.name}: ${percent(share)}, ${amountsText(used)}`,
          };
        }),
    [agentsVersion],
  );
  if (agents.length === 0) return html`<${Empty}>No agent has registered.<//>`;
  return html`<${CellMap} items=${items} label="Allocation of ${count(agents.length)}
    agents, which the page Agents lists"
    onPick=${(id) => (location.hash = link("agents", id))} />`;
}

function History() {
  const store = useStore();
  const [span, setSpan] = useState("900");
  // Each second at most: the plot moves with time.
  const now = Math.floor(Date.now() / 1000);
  const { times, counts, step } = useMemo(
    () => countStates(store.tasks.values(), Number(span), now),
    [store.tasksVersion, span, now],
  );
  const series = (names) => Object.entries(names).map(([kind, name]) => ({ kind, name, values: counts[kind] }));
  const choice = html`<${Choice} value=${span} label="Time span" options=${SPANS} onChange=${setSpan} />`;
  return html`<section class="panel" aria-label="Tasks over time">
    <h2>Tasks over time <small>from the statuses that the master keeps</small>${choice}</h2>
    <div class="columns">
      <div><h3>Active at a time</h3><${TimePlot} label="Running and pending tasks over time" times=${times}
        series=${series({ running: "running", pending: "pending" })} /></div>
      <div><h3>Ended, each ${duration(step)}</h3><${TimePlot} label="Ended tasks over time" times=${times} bars
        series=${series({ done: "finished", stopped: "killed", bad: "failed or lost" })} /></div>
    </div>
  </section>`;
}
