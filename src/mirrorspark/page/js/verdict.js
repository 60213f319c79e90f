/**
 * A flow's state in one word, with a shade. Of a server that is away it is told in the past.
 */

import { live } from "./live.js";

const SHADES = {
  running: "good",
  idle: "quiet",
  paused: "warning",
  starting: "quiet",
  restarting: "warning",
  stopping: "quiet",
  stopped: "quiet",
  degraded: "warning",
  "heartbeats only": "quiet",
};

export function verdictWord(flow) {
  return live.isLive ? flow.verdict : `was ${flow.verdict}`;
}

/** What is not known here is bad: silent, failed, superseded, and words of a later server. */
export function verdictShade(flow) {
  return live.isLive ? (SHADES[flow.verdict] ?? "bad") : "quiet";
}
