/**
 * Topics of a flow with their lag; each can be held and let go.
 */

import { mayChange } from "../about.js";
import { ask } from "../api.js";
import { about, bytes, count, seconds } from "../format.js";
import { Listing } from "../listing.js";
import { live } from "../live.js";
import { changePause, isHeld } from "../pausing.js";
import { link } from "../router.js";
import { fillButton, fillLink } from "../table.js";

/** The server sums up all partitions for it: more seldom than what it only looks up. */
const REFRESH_MS = 5_000;

function columnsOf(id) {
  const toPartitions = (cell, { topic }) => fillLink(cell, topic, link("flows", id, "partitions", topic));
  return [
    { title: "Topic", sort: "name", fill: toPartitions },
    { title: "On the target", text: (row) => row.remote_topic },
    { title: "Partitions", isFigure: true, text: (row) => count(row.partitions) },
    { title: "Lag", isFigure: true, sort: "lag", descends: true, text: (row) => count(row.lag_records) },
    { title: "Behind by", isFigure: true, text: (row) => seconds(row.lag_seconds) },
    { title: "Records/s", isFigure: true, text: (row) => about(row.records_per_s) },
    { title: "Bytes/s", isFigure: true, sort: "rate", descends: true, text: (row) => bytes(row.bytes_per_s) },
    { title: "Hold", fill: (cell, row) => fillHold(cell, id, row) },
  ];
}

/** A topic of a flow that is held as a whole cannot be let go alone. */
function fillHold(cell, id, { topic, remote_topic: remoteTopic }) {
  const flow = live.flow(id);
  const isShown = flow !== null && mayChange() && !flow.paused.includes("*");
  const verb = flow !== null && isHeld(flow, remoteTopic) ? "resume" : "pause";
  const word = verb === "pause" ? "Pause…" : "Resume…";
  fillButton(cell, word, `${word} ${topic}`, { isShown, press: () => changePause(verb, id, topic) });
}

export function topicsView(id) {
  const listing = new Listing({
    caption: `Topics of ${id}`,
    noun: "topic",
    searchLabel: "Search topics",
    columns: columnsOf(id),
    keyOf: (row) => row.remote_topic,
    sort: "lag",
    refreshMs: REFRESH_MS,
    load: async ({ signal, ...query }) => {
      const found = await ask(["flows", id, "lag"], { query, signal });
      return { ...found, rows: found.topics };
    },
  });
  let held = null;
  return {
    node: listing.node,
    update(flow) {
      const now = flow.paused.join(" ");
      if (held !== null && held !== now) {
        listing.reload();
      }
      held = now;
    },
    end: () => listing.end(),
  };
}
