// Task states over time, counted from the task statuses that the master retains. It draws nothing.

import { hasEnded, stateKind } from "./format.js";

/** Intervals of a plot. */
const BINS = 90;

/** The series of a task's state during one of its statuses. */
const SERIES = ["pending", "running", "done", "stopped", "bad"];

/**
 * Counts per interval of the last `span` seconds: the tasks that were pending and running at its end, and those that
 * became done, stopped or bad in it.
 */
export function countStates(tasks, span, now) {
  const step = span / BINS;
  const end = Math.ceil(now / step) * step;
  const begin = end - span;
  const times = Array.from({ length: BINS }, (_, bin) => begin + (bin + 1) * step);
  const counts = Object.fromEntries(SERIES.map((name) => [name, new Array(BINS).fill(0)]));
  // The first interval at whose end a moment has passed.
  const binOf = (time) => Math.max(0, Math.ceil((time - begin) / step) - 1);
  for (const { statuses, state } of tasks) {
    for (let index = 0; index < statuses.length; index++) {
      const kind = stateKind(statuses[index].state);
      const from = statuses[index].time;
      if (hasEnded(statuses[index].state)) {
        if (from > begin && from <= end) counts[kind][binOf(from)]++;
        break;
      }
      const to = statuses[index + 1]?.time ?? (hasEnded(state) ? from : Infinity);
      if (to <= begin || (kind !== "pending" && kind !== "running")) continue;
      // Differences, which are summed up below.
      counts[kind][binOf(from)]++;
      const last = to === Infinity ? BINS : binOf(to);
      if (last < BINS) counts[kind][last]--;
    }
  }
  for (const kind of ["pending", "running"]) {
    for (let bin = 1; bin < BINS; bin++) counts[kind][bin] += counts[kind][bin - 1];
  }
  return { times, counts, step };
}
