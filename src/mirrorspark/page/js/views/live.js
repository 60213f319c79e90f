/**
 * A flow as it runs: charts, figures, what an operator should look at, lanes.
 */

import { ask } from "../api.js";
import { Chart } from "../chart.js";
import { h, keepChildren, setAttribute, setText } from "../dom.js";
import { about, ago, bytes, count, counted, milliseconds, seconds } from "../format.js";
import { historyOf } from "../history.js";
import { Listing, pageOf } from "../listing.js";
import { fillTag } from "../table.js";

const LANES_REFRESH_MS = 2_000;

const CHARTS = [
  {
    title: "Throughput",
    series: [
      { name: "records/s", figure: "records_per_s", words: about },
      { name: "bytes/s", figure: "bytes_per_s", words: bytes },
    ],
  },
  {
    title: "Lag",
    series: [
      { name: "records", figure: "lag_records", words: about },
      { name: "behind by", figure: "lag_seconds", words: seconds },
    ],
  },
  { title: "Latency", series: [{ name: "largest of 10 s", figure: "latency_ms", words: milliseconds }] },
];

/** Title -> words. */
const FIGURES = {
  "Carried since the start": (flow) => `${count(flow.records)} records, ${bytes(flow.bytes)}`,
  "Topics and partitions": (flow) => `${counted(flow.topics, "topic")}, ${counted(flow.partitions, "partition")}`,
  "Lag": (flow) => `${count(flow.lag_records)} records, ${bytes(flow.lag_bytes)}, ${seconds(flow.lag_seconds)}`,
  "Age of the records": (flow) => milliseconds(flow.record_age_ms),
  "Newest heartbeat": (flow) => ago(flow.heartbeat_age_s),
  "Lanes": (flow) => `${flow.lanes.reporting} of ${flow.lanes.expected} report`,
  "Paused": (flow) => (flow.paused.includes("*") ? "everything" : flow.paused.join(", ") || "nothing"),
};

const LANE_COLUMNS = [
  { title: "Lane", text: (lane) => String(lane.lane) },
  { title: "State", fill: fillLaneState },
  { title: "Reported", isFigure: true, text: (lane) => ago(lane.reported_age_s) },
  { title: "Partitions", isFigure: true, text: (lane) => count(lane.partitions) },
  { title: "Memory held", isFigure: true, text: (lane) => `${bytes(lane.held_bytes)} of ${bytes(lane.held_bytes_max)}` },
  { title: "Records", isFigure: true, text: (lane) => count(lane.records) },
  { title: "Attempts", isFigure: true, text: (lane) => count(lane.attempts) },
];

/** What a lane said before it fell silent is not its state. */
function fillLaneState(cell, { reports, reported_age_s: age, state }) {
  fillTag(cell, reports || age === null ? state : "silent", reports ? "quiet" : "bad");
}

export function liveView(id) {
  const charts = CHARTS.map((one) => new Chart(one));
  const values = Object.keys(FIGURES).map((title) => [title, h("dd")]);
  const notices = h("ul", { class: "notices" });
  const more = h("p");
  const lanes = new Listing({
    caption: "Lanes",
    noun: "lane",
    columns: LANE_COLUMNS,
    keyOf: (lane) => lane.lane,
    refreshMs: LANES_REFRESH_MS,
    load: async (query) => pageOf((await ask(["flows", id, "lanes"], { signal: query.signal })).lanes, query),
  });
  const title = h("h2", { id: "attention-title" }, "To look at");
  const attention = h("section", { class: "attention", "aria-labelledby": "attention-title" }, title, notices, more);
  const node = h(
    "div",
    {},
    attention,
    h("div", { class: "charts" }, charts.map((chart) => chart.node)),
    h("dl", { class: "facts" }, values.map(([title, value]) => h("div", {}, h("dt", {}, title), value))),
    h("h2", {}, "Lanes"),
    lanes.node,
  );

  return {
    node,
    update(flow) {
      charts.forEach((chart) => chart.show(historyOf(id)));
      values.forEach(([title, value]) => setText(value, FIGURES[title](flow)));
      setAttribute(attention, "hidden", flow.notices_count === 0);
      keepChildren(notices, flow.notices, (text) => text, () => h("li"), setText);
      const rest = flow.notices_count - flow.notices.length;
      setText(more, rest > 0 ? `and ${count(rest)} more` : "");
    },
    end() {
      charts.forEach((chart) => chart.end());
      lanes.end();
    },
  };
}
