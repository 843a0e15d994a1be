// Tasks, agents and frameworks in the form that the page keeps, made from messages of the operator API.

import { seconds } from "./format.js";

/** Port of an agent whose info has none. */
const DEFAULT_PORT = 5051;

/** A status of a task, with the fields that the page shows. */
export const statusOf = (status) => ({
  state: status.state,
  time: status.timestamp ?? 0,
  message: status.message,
  reason: status.reason,
  source: status.source,
  healthy: status.healthy,
});

export function taskOf(task) {
  const statuses = (task.statuses ?? []).map(statusOf);
  return {
    id: task.task_id.value,
    name: task.name,
    framework: task.framework_id.value,
    agent: task.agent_id.value,
    // A command task has an executor of its own, with the task's id.
    executor: task.executor_id?.value || task.task_id.value,
    state: task.state,
    statuses,
    updated: statuses.at(-1)?.time ?? 0,
    resources: task.resources ?? [],
    user: task.user,
    labels: task.labels?.labels ?? [],
    role: task.resources?.find((one) => one.allocation_info)?.allocation_info.role ?? "*",
  };
}

/** The display name of an agent. Several on one host differ by their ports. */
const nameOf = ({ hostname, port = DEFAULT_PORT }) => (port === DEFAULT_PORT ? hostname : `${hostname}:${port}`);

export const agentOf = (agent) => ({
  id: agent.agent_info.id.value,
  host: agent.agent_info.hostname,
  port: agent.agent_info.port ?? DEFAULT_PORT,
  name: nameOf(agent.agent_info),
  active: agent.active,
  deactivated: agent.deactivated ?? false,
  drain: agent.drain_info,
  drainStart: seconds(agent.estimated_drain_start_time),
  version: agent.version,
  registered: seconds(agent.registered_time),
  reregistered: seconds(agent.reregistered_time),
  attributes: agent.agent_info.attributes ?? [],
  domain: agent.agent_info.domain?.fault_domain,
  total: agent.total_resources ?? [],
  allocated: agent.allocated_resources ?? [],
  offered: agent.offered_resources ?? [],
});

export function frameworkOf(framework, completed) {
  const info = framework.framework_info;
  return {
    id: info.id.value,
    name: info.name,
    user: info.user,
    principal: info.principal,
    host: info.hostname,
    url: info.webui_url,
    roles: info.roles?.length ? info.roles : [info.role ?? "*"],
    failover: info.failover_timeout ?? 0,
    capabilities: (info.capabilities ?? []).map((one) => one.type),
    active: framework.active,
    connected: framework.connected,
    completed,
    registered: seconds(framework.registered_time),
    unregistered: seconds(framework.unregistered_time),
    allocated: framework.allocated_resources ?? [],
    offered: framework.offered_resources ?? [],
    offers: framework.offers ?? [],
  };
}
