// The page's copy of the master's state: agents, frameworks and tasks from the event stream, and answers to calls
// for the rest. It notifies its listeners of changes in batches, and draws nothing.

import { CallError, call, subscribe } from "./api.js";
import { hasEnded } from "./format.js";
import { agentOf, frameworkOf, statusOf, taskOf } from "./model.js";
import { visible, whenHidden } from "./visible.js";

/** Maximum number of ended tasks that are kept; the master removes the oldest, too. */
const ENDED_MAX = 100_000;
/** Shortest time between two renderings, in milliseconds. They take at most a fifth of the time. */
const RENDER_EVERY = 200;
/** Shortest time between two calls for the same answer, in milliseconds. */
const CALL_EVERY = 2000;
/** Interval between calls for a slow answer, as a multiple of the time that the last one took. */
const CALL_PART = 500;
/** Maximum of that interval, in milliseconds. */
const CALL_LATEST = 30_000;
const RECONNECT_EVERY = 2000;
/** Time for which an answer is kept that no page shows, in milliseconds. */
const ANSWER_KEPT = 60_000;

/** Number of tasks that are added at once; the page draws, and reacts to its user, in between. */
const SLICE = 4000;

/** Resolves after the pending rendering has been painted. */
const painted = () =>
  new Promise((resolve) => setTimeout(() => requestAnimationFrame(() => setTimeout(resolve))));

/** The key of a task in the map of tasks. */
const taskKey = (framework, task) => `${framework}/${task}`;

export class Store {
  agents = new Map();
  frameworks = new Map();
  tasks = new Map();
  /** The reason for which there is no event stream; undefined while there is one. */
  error = undefined;
  /** Whether the state has arrived. */
  ready = false;
  /** Counts changes: of the tasks, of the agents, and of everything. */
  tasksVersion = 0;
  agentsVersion = 0;
  version = 0;
  #ended = [];
  #listeners = new Set();
  #scheduled = false;
  /** Time until the next rendering; the first one is at once. */
  #pause = 0;
  #answers = new Map();
  #stopped = false;
  /** Ends the current event stream. */
  #leave = () => {};

  /** Follows the event stream while the page is in view, and subscribes again when the stream ends. */
  async run() {
    await visible();
    // The state of a large cluster takes seconds: the overview's figures are requested, and drawn, before it.
    await this.#current(this.#kept("GET_OVERVIEW"));
    await painted();
    while (!this.#stopped) {
      await visible();
      const connection = new AbortController();
      this.#leave = () => connection.abort();
      const forget = whenHidden(this.#leave);
      let failure;
      try {
        await subscribe((event) => this.#apply(event), connection.signal);
      } catch (error) {
        failure = error;
      }
      forget();
      if (connection.signal.aborted || this.#stopped) continue;
      this.error = failure instanceof CallError ? failure : new CallError(0, String(failure));
      this.#changed();
      // Only another user changes these answers.
      if (failure.status === 401 || failure.status === 403) return;
      await new Promise((resume) => setTimeout(resume, RECONNECT_EVERY));
    }
  }

  stop() {
    this.#stopped = true;
    this.#leave();
  }

  /** Calls `listener` after changes; returns a function that ends this. */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  agentName = (id) => this.agents.get(id)?.name ?? id;
  frameworkName = (id) => this.frameworks.get(id)?.name ?? id;
  task = (framework, id) => this.tasks.get(taskKey(framework, id));

  /**
   * The answer to a call, `{data, error}`: undefined until it has arrived. It is requested again when it may have
   * changed.
   */
  answer(type, body) {
    const answer = this.#kept(type, body);
    this.#current(answer);
    return answer;
  }

  #kept(type, body) {
    const key = type + JSON.stringify(body ?? null);
    let answer = this.#answers.get(key);
    if (!answer) {
      this.#forgetAnswers();
      this.#answers.set(key, (answer = { type, body, version: -1, next: 0 }));
    }
    answer.used = Date.now();
    return answer;
  }

  /** Removes answers that no page has shown for a while. */
  #forgetAnswers() {
    const kept = [...this.#answers].filter(([, { used }]) => used > Date.now() - ANSWER_KEPT);
    this.#answers = new Map(kept);
  }

  /** Requests all answers again, after a change that has no event. */
  refresh() {
    for (const answer of this.#answers.values()) answer.next = 0;
    this.#changed();
  }

  /** Requests the answer again, now or later, if it may have changed. Resolves when no request is pending. */
  #current(answer) {
    const now = Date.now();
    if (answer.asking || answer.version === this.version || document.hidden) return answer.asking;
    if (now >= answer.next) return (answer.asking = this.#ask(answer));
    answer.timer ??= setTimeout(() => {
      answer.timer = undefined;
      // No page shows it if no rendering has used it since.
      if (answer.used > now - CALL_EVERY) this.#current(answer);
    }, answer.next - now);
    return undefined;
  }

  async #ask(answer) {
    const begin = Date.now();
    answer.version = this.version;
    try {
      answer.data = await call(answer.type, answer.body);
      answer.error = undefined;
      this.#take(answer);
    } catch (error) {
      answer.error = error;
    }
    answer.asking = undefined;
    const took = Date.now() - begin;
    answer.next = Date.now() + Math.min(Math.max(CALL_EVERY, CALL_PART * took), CALL_LATEST);
    this.#render();
  }

  /** Agents and frameworks have properties of which there are no events. */
  #take({ type, data }) {
    if (type === "GET_AGENTS") this.#setAgents(data);
    if (type === "GET_FRAMEWORKS") this.#setFrameworks(data);
  }

  #setAgents({ agents = [] }) {
    this.agents = new Map(agents.map(agentOf).map((agent) => [agent.id, agent]));
    this.agentsVersion++;
  }

  #setFrameworks({ frameworks = [], completed_frameworks: completed = [] }) {
    const all = [
      ...completed.map((one) => frameworkOf(one, true)),
      ...frameworks.map((one) => frameworkOf(one, false)),
    ];
    this.frameworks = new Map(all.map((framework) => [framework.id, framework]));
  }

  async #apply(event) {
    switch (event.type) {
      case "SUBSCRIBED":
        await this.#subscribed(event.subscribed.get_state ?? {});
        break;
      case "TASK_ADDED":
        this.#setTask(taskOf(event.task_added.task));
        break;
      case "TASK_UPDATED":
        this.#updateTask(event.task_updated);
        break;
      case "AGENT_ADDED": {
        const agent = agentOf(event.agent_added.agent);
        this.agents.set(agent.id, agent);
        this.agentsVersion++;
        break;
      }
      case "AGENT_REMOVED":
        this.agents.delete(event.agent_removed.agent_id.value);
        this.agentsVersion++;
        break;
      case "FRAMEWORK_ADDED":
        this.#setFramework(frameworkOf(event.framework_added.framework, false));
        break;
      case "FRAMEWORK_UPDATED":
        this.#setFramework(frameworkOf(event.framework_updated.framework, false));
        break;
      case "FRAMEWORK_REMOVED": {
        const framework = this.frameworks.get(event.framework_removed.framework_info.id.value);
        if (framework) this.#setFramework({ ...framework, completed: true, active: false, connected: false });
        break;
      }
      // On a heartbeat answers are requested again: some changes have no event.
    }
    this.#changed();
  }

  /** Adds the whole state in slices, and shows it when it is complete; events follow it. */
  async #subscribed(state) {
    const { completed_tasks: completed = [], unreachable_tasks: unreachable = [], tasks = [] } = state.get_tasks ?? {};
    const all = new Map();
    const ended = [];
    for (const list of [completed, unreachable, tasks]) {
      for (let at = 0; at < list.length; at += SLICE) {
        if (at > 0) await new Promise((resume) => setTimeout(resume));
        for (const task of list.slice(at, at + SLICE).map(taskOf)) {
          const key = taskKey(task.framework, task.id);
          all.set(key, task);
          if (hasEnded(task.state)) ended.push(key);
        }
      }
    }
    this.error = undefined;
    this.ready = true;
    this.#setAgents(state.get_agents ?? {});
    this.#setFrameworks(state.get_frameworks ?? {});
    this.tasks = all;
    this.tasksVersion++;
    this.#ended = ended;
  }

  #setFramework(framework) {
    this.frameworks.set(framework.id, framework);
  }

  #setTask(task) {
    const key = taskKey(task.framework, task.id);
    this.tasks.set(key, task);
    this.tasksVersion++;
    if (hasEnded(task.state)) this.#limit(key);
  }

  #updateTask({ framework_id: framework, status, state }) {
    const key = taskKey(framework.value, status.task_id.value);
    const old = this.tasks.get(key);
    if (!old) return;
    const statuses = old.statuses.at(-1)?.state === status.state ? old.statuses.slice(0, -1) : old.statuses;
    const updated = status.timestamp ?? old.updated;
    this.tasks.set(key, { ...old, state, updated, statuses: [...statuses, statusOf(status)] });
    this.tasksVersion++;
    if (hasEnded(state) && !hasEnded(old.state)) this.#limit(key);
  }

  /** Records that a task has ended, and removes the tasks that ended first. */
  #limit(key) {
    this.#ended.push(key);
    if (this.#ended.length < ENDED_MAX * 1.1) return;
    for (const old of this.#ended.splice(0, this.#ended.length - ENDED_MAX)) {
      if (hasEnded(this.tasks.get(old)?.state)) this.tasks.delete(old);
    }
  }

  #changed() {
    this.version++;
    this.#render();
  }

  #render() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setTimeout(
      () =>
        requestAnimationFrame(() => {
          this.#scheduled = false;
          const begin = performance.now();
          for (const listener of this.#listeners) listener();
          // Rendering follows in a microtask.
          setTimeout(() => (this.#pause = Math.max(RENDER_EVERY, 4 * (performance.now() - begin))));
        }),
      this.#pause,
    );
  }
}
