/**
 * One group, partition by partition: where it stands on the source, where it belongs on the target, where it stands there.
 */

import { ask } from "../api.js";
import { h, setText } from "../dom.js";
import { count } from "../format.js";
import { Listing, pageOf } from "../listing.js";
import { link } from "../router.js";
import { fillTag } from "../table.js";

const REFRESH_MS = 10_000;

const COLUMNS = [
  { title: "Partition", text: placeOf },
  { title: "Source", isFigure: true, text: (row) => count(row.source_offset) },
  { title: "Source end", isFigure: true, text: (row) => count(row.source_end) },
  { title: "Lag", isFigure: true, text: (row) => count(row.lag_records) },
  { title: "Belongs at", isFigure: true, text: (row) => count(row.target_offset_exact) },
  { title: "Target", isFigure: true, text: (row) => count(row.target_offset) },
  { title: "Known", fill: (cell, row) => fillTag(cell, row.exact ? "exact" : row.reason, row.exact ? "good" : "warning") },
  { title: "Verdict", text: (row) => verdictOf(row) },
];

function placeOf({ topic, partition }) {
  return `${topic}-${partition}`;
}

function summaryOf({ ready, word, state, target_state: targetState }) {
  const verdict = ready ? "Ready to fail over" : "Not ready to fail over";
  return `${verdict}: ${word}. ${state} on the source, ${targetState} on the target.`;
}

function leftOut([topic, why]) {
  return h("li", {}, `${topic} is not carried: ${why}`);
}

function verdictOf(row) {
  return row.is_beyond_end ? "beyond the source's end" : (row.verdict ?? "");
}

export function groupView(id, group) {
  const words = h("p", {});
  const left = h("ul", { class: "notices" });
  const listing = new Listing({
    caption: `Positions of ${group}`,
    noun: "partition",
    searchLabel: "Search partitions",
    columns: COLUMNS,
    keyOf: (row) => `${row.remote_topic}-${row.partition}`,
    refreshMs: REFRESH_MS,
    load: async (query) => {
      const found = await ask(["flows", id, "groups", group], { signal: query.signal });
      setText(words, summaryOf(found));
      left.replaceChildren(...Object.entries(found.left_out).map(leftOut));
      return pageOf(found.partitions, query, (row, text) => placeOf(row).toLowerCase().includes(text));
    },
  });
  const back = h("a", { href: link("flows", id, "groups") }, "All groups");
  return { node: h("div", {}, h("h2", {}, group), back, words, left, listing.node), end: () => listing.end() };
}
