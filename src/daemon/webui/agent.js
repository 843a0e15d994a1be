// The agent's page: its list of pages, and the document of its state that they show.

import { createContext, html, useContext, useEffect, useState } from "./vendor/preact-htm.js";
import { read } from "./api.js";
import { ExecutorPage, ExecutorsPage, TaskPage } from "./executors.js";
import { LogPage } from "./log.js";
import { Shell, run } from "./shell.js";
import { dateTime } from "./format.js";
import { Answer, Badge, Facts, Heading, Id, Section, Totals } from "./ui.js";

/** Interval between reads of the state while the page is visible, in milliseconds: agents have no event stream. */
const EVERY = 3000;

const StateContext = createContext({});

/** The state, read periodically: `{data, error}`. */
function useAgentState() {
  const [answer, setAnswer] = useState({});
  useEffect(() => {
    let timer;
    let isOver = false;
    const ask = async () => {
      let next = {};
      try {
        if (!document.hidden) next = { data: await read("/state"), error: undefined };
      } catch (error) {
        next = { error };
      }
      if (isOver) return;
      setAnswer((old) => ({ ...old, ...next }));
      timer = setTimeout(ask, EVERY);
    };
    ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  return answer;
}

/** A page of the state's data. */
const ofState = (page) => (properties) => {
  const answer = useContext(StateContext);
  return html`<${Answer} answer=${answer}>${(state) => html`<${page} state=${state} ...${properties} />`}<//>`;
};

/** The used part of the agent's resources. */
function used({ frameworks = [] }) {
  const sums = {};
  for (const { resources } of frameworks.flatMap((framework) => framework.executors)) {
    for (const [name, value] of Object.entries(resources)) {
      if (typeof value === "number") sums[name] = (sums[name] ?? 0) + value;
    }
  }
  return sums;
}

const scalars = (given) => Object.fromEntries(Object.entries(given).filter(([, value]) => typeof value === "number"));

function AgentOverview({ state }) {
  return html`<${Heading} title=${state.hostname}>${
    state.drain_config &&
    html`<${Badge}
    kind="stopped">draining<//>`
  }<//>
    <${Section} title="About"><${Facts} facts=${[
      ["id", state.id ? html`<${Id} value=${state.id} />` : "not registered yet"],
      ["address", state.pid],
      ["master", state.master_hostname],
      ["started", dateTime(state.start_time)],
      [
        "attributes",
        Object.entries(state.attributes)
          .map(([name, value]) => `${name}: ${value}`)
          .join(", "),
      ],
      ["ports", state.resources.ports],
      ["build", state.git_tag],
    ]} /><//>
    <${Section} title="Resources"><${Totals} total=${scalars(state.resources)} allocated=${used(state)} /><//>
    <${ExecutorsPage} state=${state} />`;
}

const AgentLog = () => html`<${LogPage} title="Log of this agent" path="/slave/log" />`;

const PAGES = [
  { title: "Overview", route: "", page: ofState(AgentOverview) },
  { title: "Log", page: AgentLog },
  { title: "Executor", route: "executors", page: ofState(ExecutorPage), hidden: true, parent: "" },
  { title: "Task", route: "tasks", page: ofState(TaskPage), hidden: true, parent: "" },
];

function Agent() {
  const answer = useAgentState();
  const notice =
    answer.error &&
    answer.data &&
    html`<p class="notice" role="alert">${answer.error.message} The state below may be old.</p>`;
  return html`<${StateContext.Provider} value=${answer}>
    <${Shell} pages=${PAGES} title="agent ${answer.data?.hostname ?? location.host}" notice=${notice} /><//>`;
}

run(() => html`<${Agent} />`);
