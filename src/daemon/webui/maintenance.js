// Maintenance: windows of the schedule, and machines that drain or are down.

import { html } from "./vendor/preact-htm.js";
import { dateTime, duration, seconds } from "./format.js";
import { Table } from "./table.js";
import { Answer, Badge, Heading, Section, useAnswer } from "./ui.js";

const machine = (id) => [id.hostname, id.ip].filter(Boolean).join(" · ");

const windowColumns = [
  {
    name: "begin",
    title: "Begins",
    width: "12rem",
    value: (row) => row.begin ?? 0,
    cell: (row) => dateTime(row.begin),
  },
  {
    name: "length",
    title: "Lasts",
    width: "8rem",
    numeric: true,
    value: (row) => row.length ?? Infinity,
    cell: (row) => (row.length ? duration(row.length) : "no end"),
  },
  { name: "machines", title: "Machines", cell: (row) => html`<span title=${row.machines}>${row.machines}</span>` },
];

const machineColumns = [
  { name: "machine", title: "Machine", value: (row) => row.machine, cell: (row) => row.machine },
  {
    name: "state",
    title: "State",
    width: "9rem",
    value: (row) => row.state,
    cell: (row) => html`<${Badge} kind=${row.state === "down" ? "bad" : "stopped"}>${row.state}<//>`,
  },
  { name: "answers", title: "Inverse offers", width: "30%", cell: (row) => row.answers },
];

const windowRow = ({ machine_ids: machines = [], unavailability }) => ({
  begin: seconds(unavailability.start),
  length: seconds(unavailability.duration),
  machines: machines.map(machine).join(", "),
});

function machineRows({ status = {} }) {
  const { draining_machines: draining = [], down_machines: down = [] } = status;
  const answers = (statuses = []) => {
    const counts = {};
    for (const { status: answer } of statuses) counts[answer] = (counts[answer] ?? 0) + 1;
    return (
      Object.entries(counts)
        .map(([answer, times]) => `${times} ${answer.toLowerCase()}`)
        .join(", ") || "none answered"
    );
  };
  return [
    ...draining.map((one) => ({ machine: machine(one.id), state: "draining", answers: answers(one.statuses) })),
    ...down.map((id) => ({ machine: machine(id), state: "down", answers: "" })),
  ];
}

export function MaintenancePage() {
  const [schedule, status] = ["GET_MAINTENANCE_SCHEDULE", "GET_MAINTENANCE_STATUS"].map((type) => useAnswer(type));
  return html`<${Heading} title="Maintenance" />
    <${Section} title="Schedule"><${Answer} answer=${schedule}>${({ schedule: { windows = [] } = {} }) => html`
      <${Table} label="Schedule" columns=${windowColumns} rows=${windows.map(windowRow)} sort=${{ name: "begin" }}
        rowKey=${(row) => row.begin + row.machines} empty="No maintenance is scheduled." />`}<//><//>
    <${Section} title="Machines"><${Answer} answer=${status}>${(data) => html`
      <${Table} label="Machines" columns=${machineColumns} rows=${machineRows(data)} sort=${{ name: "machine" }}
        rowKey=${(row) => row.machine} empty="No machine is draining or down." />`}<//><//>`;
}
