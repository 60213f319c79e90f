/**
 * The last minutes of each flow, for charts. Filled while the page is open; a break of the connection is a hole in the line.
 */

import { live } from "./live.js";

const POINTS_MAX = 600;
export const FIGURES = ["records_per_s", "bytes_per_s", "lag_records", "lag_seconds", "latency_ms"];

/** By flow: `{times, records_per_s, …}`, times in Unix seconds. */
const kept = new Map();

export function historyOf(flow) {
  return kept.get(flow) ?? emptyHistory();
}

function emptyHistory() {
  return Object.fromEntries(["times", ...FIGURES].map((name) => [name, []]));
}

function add(history, time, figures) {
  history.times.push(time);
  for (const name of FIGURES) {
    history[name].push(figures[name] ?? null);
  }
  if (history.times.length > POINTS_MAX) {
    for (const values of Object.values(history)) {
      values.shift();
    }
  }
}

/** Call once, before the stream starts: views that listen later find the point already there. */
export function keepHistory() {
  live.addEventListener("snapshot", () => {
    const flows = new Set(live.flows.map((flow) => flow.flow));
    for (const gone of [...kept.keys()].filter((id) => !flows.has(id))) {
      kept.delete(gone);
    }
    for (const flow of live.flows) {
      if (!kept.has(flow.flow)) {
        kept.set(flow.flow, emptyHistory());
      }
      add(kept.get(flow.flow), live.receivedAtMs / 1_000, flow);
    }
  });
  live.addEventListener("connection", () => {
    if (!live.isLive) {
      kept.forEach((history) => add(history, Date.now() / 1_000, {}));
    }
  });
}
