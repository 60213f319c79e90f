/**
 * The front: the map, and all flows with their figures.
 */

import { ask } from "../api.js";
import { h } from "../dom.js";
import { about, bytes, count, milliseconds, seconds } from "../format.js";
import { historyOf } from "../history.js";
import { live } from "../live.js";
import { link } from "../router.js";
import { drawSparkline, sparkline } from "../sparkline.js";
import { fillLink, fillTag, Table } from "../table.js";
import { Topology } from "../topology.js";
import { verdictShade, verdictWord } from "../verdict.js";

const COLUMNS = [
  { title: "Flow", isName: true, fill: (cell, flow) => fillLink(cell, flow.flow, link("flows", flow.flow)) },
  { title: "State", fill: (cell, flow) => fillTag(cell, verdictWord(flow), verdictShade(flow)) },
  { title: "Last minute", fill: fillSparkline },
  { title: "Records/s", isFigure: true, text: (flow) => about(flow.records_per_s) },
  { title: "Bytes/s", isFigure: true, text: (flow) => bytes(flow.bytes_per_s) },
  { title: "Lag", isFigure: true, text: (flow) => count(flow.lag_records) },
  { title: "Behind by", isFigure: true, text: (flow) => seconds(flow.lag_seconds) },
  { title: "Latency", isFigure: true, text: (flow) => milliseconds(flow.latency_ms) },
  { title: "Partitions", isFigure: true, text: (flow) => count(flow.partitions) },
  { title: "Events", isFigure: true, text: (flow) => count(flow.events_count) },
];

function fillSparkline(cell, flow) {
  const drawing = cell.firstElementChild ?? cell.appendChild(sparkline());
  drawSparkline(drawing, historyOf(flow.flow).bytes_per_s);
}

export function overview() {
  const map = new Topology();
  const table = new Table({ caption: "Flows", columns: COLUMNS, keyOf: (flow) => flow.flow });
  const empty = h("p", {}, "There is no flow here.");
  const node = h("div", {}, h("h1", { tabindex: "-1" }, "Flows"), map.node, empty, table.node);
  const nameClusters = () => live.isLive && ask(["topology"]).then((found) => map.name(found.clusters), () => {});
  live.addEventListener("connection", nameClusters);
  nameClusters();
  return {
    node,
    title: "Flows",
    update() {
      empty.hidden = live.flows.length > 0;
      table.node.hidden = live.flows.length === 0;
      table.show(live.flows);
      map.show(live.flows);
    },
    end() {
      live.removeEventListener("connection", nameClusters);
      map.end();
    },
  };
}
