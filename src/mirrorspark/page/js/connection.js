/**
 * Says whether what is shown is live. Its words change only with the state, so that a screen reader tells each change once.
 */

import { setAttribute, setText } from "./dom.js";
import { counted, timeOfDay } from "./format.js";
import { live } from "./live.js";

export function prepareConnection() {
  live.addEventListener("connection", show);
  live.addEventListener("snapshot", showEvents);
  document.getElementById("try-now").addEventListener("click", () => live.tryNow());
}

function show() {
  const line = document.getElementById("connection");
  setAttribute(document.documentElement, "data-live", String(live.isLive));
  setAttribute(line, "data-state", live.isLive ? "live" : "away");
  setText(line, live.isLive ? "live" : "not live");
  setAttribute(document.getElementById("away"), "hidden", live.isLive);
  setText(document.getElementById("away-text"), awayWords());
}

function awayWords() {
  const isEmpty = live.receivedAtMs === null;
  const shown = isEmpty ? "Nothing was received yet." : `What you see is of ${timeOfDay(live.receivedAtMs)}.`;
  return `${live.trouble}. ${shown} The page tries again by itself.`;
}

function showEvents() {
  const badge = document.getElementById("events-count");
  const events = live.flows.reduce((sum, flow) => sum + flow.events_count, 0);
  setText(badge, events);
  setAttribute(badge, "aria-label", counted(events, "event"));
  setAttribute(badge, "hidden", events === 0);
}
