/**
 * Consumer groups on both sides, and whether one may fail over.
 */

import { ask } from "../api.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { Listing } from "../listing.js";
import { link } from "../router.js";
import { fillLink, fillTag } from "../table.js";
import { readiness } from "./readiness.js";

const REFRESH_MS = 10_000;
const NOT_WRITTEN =
  "The flow does not write the groups' offsets to the target (sync.group.offsets.enabled): " +
  "groups are in step only after a failover.";

function columnsOf(id) {
  return [
    { title: "Group", fill: (cell, row) => fillLink(cell, row.group, link("flows", id, "groups", row.group)) },
    { title: "Ready to fail over", fill: fillReady },
    { title: "On the target", text: (row) => row.word },
    { title: "Positions", text: (row) => (row.exact ? "exact" : "not all exact") },
    { title: "Lag on the source", isFigure: true, text: (row) => count(row.lag_records) },
    { title: "Partitions", isFigure: true, text: (row) => count(row.partitions) },
    { title: "Source", text: (row) => row.state },
    { title: "Target", text: (row) => row.target_state },
  ];
}

function fillReady(cell, { ready }) {
  fillTag(cell, ready ? "ready" : "not ready", ready ? "good" : "warning");
}

export function groupsView(id) {
  const notices = h("ul", { class: "notices" });
  const listing = new Listing({
    caption: `Groups of ${id}`,
    noun: "group",
    searchLabel: "Search groups",
    columns: columnsOf(id),
    keyOf: (row) => row.group,
    refreshMs: REFRESH_MS,
    load: async ({ signal, search, offset, limit }) => {
      const found = await ask(["flows", id, "groups"], { query: { search, offset, limit }, signal });
      notices.replaceChildren(...noticesOf(found).map((text) => h("li", {}, text)));
      return { ...found, rows: found.groups };
    },
  });
  const node = h("div", {}, readiness(id), h("h2", {}, "Groups"), notices, listing.node);
  return { node, end: () => listing.end() };
}

function noticesOf(found) {
  return found.writes_offsets ? found.notices : [NOT_WRITTEN, ...found.notices];
}
