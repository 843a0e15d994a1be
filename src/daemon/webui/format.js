// Texts and numbers of values of the APIs: amounts of resources, times, states, links. It shows nothing itself.

/** Amounts of scalars by name, of a list of v1 resources. */
export function amounts(resources = []) {
  const sums = {};
  for (const { name, type, scalar } of resources) {
    if (type === "SCALAR") sums[name] = (sums[name] ?? 0) + (scalar?.value ?? 0);
  }
  return sums;
}

/** Quantities in the form of quotas: `{cpus: {value: 1}}`. */
export const quantities = (given = {}) =>
  Object.fromEntries(Object.entries(given).map(([name, scalar]) => [name, scalar.value]));

/** The ranges of `ports` as text. */
export function ports(resources = []) {
  const ranges = resources.filter((one) => one.name === "ports").flatMap((one) => one.ranges?.range ?? []);
  return ranges.map(({ begin, end }) => (begin === end ? `${begin}` : `${begin}–${end}`)).join(", ");
}

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

const ORDER = new Intl.Collator("en", { numeric: true });

/** Compares two texts, numbers in them by their values: `agent-9` comes before `agent-10`. */
export const compare = ORDER.compare;

export const number = (value) => (Number.isFinite(value) ? NUMBER.format(value) : "–");
export const count = (value) => WHOLE.format(value ?? 0);
export const percent = (share) => (Number.isFinite(share) ? `${NUMBER.format(Math.round(share * 1000) / 10)} %` : "–");

/** A size as Mesos counts memory and disk: megabytes of 2^20 bytes. */
export function megabytes(value) {
  if (!Number.isFinite(value)) return "–";
  const units = ["MB", "GB", "TB", "PB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${NUMBER.format(Math.round(value * 10) / 10)} ${units[unit]}`;
}

export const bytes = (value) =>
  value < 1024
    ? `${value} B`
    : value < 1 << 20
      ? `${NUMBER.format(Math.round(value / 102.4) / 10)} KB`
      : megabytes(value / (1 << 20));

/** One amount with its unit. */
export const amount = (name, value) => (name === "mem" || name === "disk" ? megabytes(value) : number(value));

/** Amounts as one line: `2 cpus, 512 MB mem`. */
export function amountsText(given) {
  const order = ["cpus", "gpus", "mem", "disk"];
  const rank = ([name]) => order.indexOf(name) + 1 || order.length + 1;
  const named = Object.entries(given)
    .filter(([, value]) => value !== 0)
    .sort((a, b) => rank(a) - rank(b));
  return named.map(([name, value]) => `${amount(name, value)} ${name}`).join(", ") || "none";
}

/** Seconds since the epoch of a v1 TimeInfo; undefined without one. */
export const seconds = (time) => (time ? time.nanoseconds / 1e9 : undefined);

const DATE = new Intl.DateTimeFormat("en-CA", { dateStyle: "short", timeStyle: "medium", hourCycle: "h23" });

/** The local date and time of seconds since the epoch. */
export const dateTime = (at) => (at ? DATE.format(at * 1000).replace(",", "") : "–");

/** A length of time in its two largest units. */
export function duration(length) {
  if (!Number.isFinite(length)) return "–";
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["m", 60],
    ["s", 1],
  ];
  let rest = Math.max(0, Math.round(length));
  const parts = [];
  for (const [unit, size] of units) {
    const whole = Math.floor(rest / size);
    if (whole > 0) parts.push(`${whole}${unit}`);
    else if (parts.length > 0) break;
    rest -= whole * size;
  }
  return parts.slice(0, 2).join(" ") || "0s";
}

/** The age of an instant in seconds since the epoch. */
export const ago = (at) => (at ? duration(Date.now() / 1000 - at) : "–");

/** A task's state without its prefix, in lower case: `running`. */
export const stateName = (state) =>
  (state ?? "")
    .replace(/^TASK_/, "")
    .replaceAll("_", " ")
    .toLowerCase();

const ENDED = new Set(
  ["FINISHED", "FAILED", "KILLED", "ERROR", "LOST", "DROPPED", "GONE", "GONE_BY_OPERATOR"].map(
    (name) => `TASK_${name}`,
  ),
);

/** Whether no other state follows. */
export const hasEnded = (state) => ENDED.has(state);

/** The kind of a state, which gives it its colour: pending, running, done, stopped or bad. */
export function stateKind(state) {
  switch (state) {
    case "TASK_RUNNING":
      return "running";
    case "TASK_STAGING":
    case "TASK_STARTING":
      return "pending";
    case "TASK_FINISHED":
      return "done";
    case "TASK_KILLED":
    case "TASK_KILLING":
      return "stopped";
    default:
      return "bad";
  }
}

/** An address that a page may link to: other schemes than HTTP could run code. */
export const webAddress = (text) => (/^https?:\/\//i.test(text ?? "") ? text : undefined);

/** The address of an agent's own page. */
export const agentPage = (agent, route) => `${location.protocol}//${agent.host}:${agent.port}/#/${route}`;
