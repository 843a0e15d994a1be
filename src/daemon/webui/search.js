// Search results: agents, frameworks and tasks whose id or name contains the text.

import { html, useMemo } from "./vendor/preact-htm.js";
import { count } from "./format.js";
import { link } from "./route.js";
import { Empty, Heading, Section, useStore } from "./ui.js";
import { TaskTable } from "./tasks.js";

/** Maximum number of agents and frameworks that are listed; the tasks are a table. */
const MOST = 50;

function Matches({ title, found, route }) {
  return (
    found.length > 0 &&
    html`<${Section} title=${title} note=${count(found.length)}>
    <ul class="matches">${found.slice(0, MOST).map(
      ([id, name]) => html`
      <li><a href=${link(route, id)}>${name}</a> <small>${id}</small></li>`,
    )}</ul>
    ${found.length > MOST && html`<p class="note">The first ${MOST} are shown.</p>`}<//>`
  );
}

export function SearchPage({ query }) {
  const store = useStore();
  const text = query.get("q") ?? "";
  const wanted = text.toLowerCase();
  const fits = (...texts) => texts.some((one) => one?.toLowerCase().includes(wanted));
  const agents = [...store.agents.values()].filter(({ id, name }) => fits(id, name)).map(({ id, name }) => [id, name]);
  const frameworks = [...store.frameworks.values()]
    .filter(({ id, name }) => fits(id, name))
    .map(({ id, name }) => [id, name]);
  const tasks = useMemo(
    () => [...store.tasks.values()].filter(({ id, name }) => fits(id, name)),
    [store.tasksVersion, wanted],
  );
  return html`<${Heading} title="Search: ${text}" />
    <${Matches} title="Agents" found=${agents} route="agents" />
    <${Matches} title="Frameworks" found=${frameworks} route="frameworks" />
    ${
      tasks.length > 0 &&
      html`<${Section} title="Tasks" note=${count(tasks.length)}><${TaskTable} tasks=${tasks}
      /><//>`
    }
    ${agents.length + frameworks.length + tasks.length === 0 && html`<${Empty}>Nothing was found.<//>`}`;
}
