/**
 * Partitions of a flow, searched and sorted by the server, a page at a time.
 */

import { ask } from "../api.js";
import { about, bytes, count, milliseconds, seconds } from "../format.js";
import { Listing } from "../listing.js";
import { fillTag } from "../table.js";

const REFRESH_MS = 2_000;

const COLUMNS = [
  { title: "Partition", sort: "name", text: (row) => `${row.topic}-${row.partition}` },
  { title: "State", fill: (cell, row) => fillTag(cell, stateOf(row), shadeOf(row)) },
  { title: "Lag", isFigure: true, sort: "lag", descends: true, text: (row) => count(row.lag_records) },
  { title: "Behind by", isFigure: true, text: (row) => seconds(row.lag_seconds) },
  { title: "Source next", isFigure: true, text: (row) => count(row.source_next) },
  { title: "Source end", isFigure: true, text: (row) => count(row.source_end) },
  { title: "Target end", isFigure: true, text: (row) => count(row.target_end) },
  { title: "Records/s", isFigure: true, text: (row) => about(row.records_per_s) },
  { title: "Bytes/s", isFigure: true, text: (row) => bytes(row.bytes_per_s) },
  { title: "Latency", isFigure: true, text: (row) => milliseconds(row.latency_ms) },
  { title: "Lane", isFigure: true, text: (row) => count(row.lane) },
];

function stateOf(row) {
  return row.waits !== null ? `waits: ${row.waits}` : row.is_paused ? "paused" : row.state;
}

function shadeOf(row) {
  return row.waits !== null || row.is_paused ? "warning" : "quiet";
}

export function partitionsView(id, search = "") {
  const listing = new Listing({
    caption: `Partitions of ${id}`,
    noun: "partition",
    searchLabel: "Search partitions",
    search,
    columns: COLUMNS,
    keyOf: (row) => `${row.remote_topic}-${row.partition}`,
    sort: "lag",
    refreshMs: REFRESH_MS,
    load: async ({ signal, ...query }) => {
      const found = await ask(["flows", id, "partitions"], { query, signal });
      return { ...found, rows: found.partitions };
    },
  });
  return { node: listing.node, end: () => listing.end() };
}
