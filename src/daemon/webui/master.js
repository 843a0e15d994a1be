// The master's page: its store, its list of pages, and the notice while there is no event stream.

import { html, useEffect, useMemo, useState } from "./vendor/preact-htm.js";
import { call } from "./api.js";
import { Shell, run } from "./shell.js";
import { Store } from "./store.js";
import { StoreContext, useStore } from "./ui.js";
import { LogPage } from "./log.js";
import { Overview } from "./overview.js";
import { AgentsPage } from "./agents.js";
import { FrameworksPage } from "./frameworks.js";
import { TasksPage } from "./tasks.js";
import { RolesPage } from "./roles.js";
import { OffersPage, OperationsPage } from "./offers.js";
import { MaintenancePage } from "./maintenance.js";
import { FairnessPage } from "./fairness.js";
import { SearchPage } from "./search.js";

const MasterLog = () => html`<${LogPage} title="Log of this master" path="/master/log" />`;

const PAGES = [
  { title: "Overview", route: "", page: Overview, early: true },
  { title: "Agents", page: AgentsPage },
  { title: "Frameworks", page: FrameworksPage },
  { title: "Tasks", page: TasksPage },
  { title: "Roles", page: RolesPage },
  { title: "Fairness", page: FairnessPage },
  { title: "Offers", page: OffersPage },
  { title: "Operations", page: OperationsPage },
  { title: "Maintenance", page: MaintenancePage },
  { title: "Log", page: MasterLog },
  { title: "Search", page: SearchPage, hidden: true },
];

/** The reason for which the page is not up to date. */
function Notice({ store }) {
  const { error, ready } = store;
  if (!error) return ready ? undefined : html`<p class="notice" role="status">Loading the cluster's state…</p>`;
  if (error.status === 307) {
    return html`<p class="notice" role="alert">This master does not lead.${" "}
      <a href=${`/redirect${location.hash}`}>Go to the leading master</a></p>`;
  }
  if (error.status === 403)
    return html`<p class="notice" role="alert">The event stream is refused: ${error.message}</p>`;
  const what = ready ? "The state below may be old" : "There is no state yet";
  return html`<p class="notice" role="alert">${error.message} ${what}; the page keeps trying to connect.</p>`;
}

/** The name of the cluster, or the address of the master. */
function useClusterName() {
  const [name, setName] = useState(location.host);
  useEffect(() => {
    const named = (flags) => flags.find((flag) => flag.name === "cluster" && flag.value)?.value;
    call("GET_FLAGS").then(
      ({ flags = [] }) => setName(named(flags) ?? location.host),
      () => {},
    );
  }, []);
  return name;
}

function Pages() {
  const store = useStore();
  const name = useClusterName();
  return html`<${Shell} pages=${PAGES} title=${name} notice=${html`<${Notice} store=${store} />`}
    searchLabel="Search agents, frameworks, tasks" isEmpty=${!store.ready} />`;
}

function Master() {
  const store = useMemo(() => new Store(), []);
  useEffect(() => {
    store.run();
    return () => store.stop();
  }, [store]);
  return html`<${StoreContext.Provider} value=${store}><${Pages} /><//>`;
}

run(() => html`<${Master} />`);
