/**
 * The map: clusters as boxes, flows as arrows between them. An arrow is a link to its flow.
 */

import { h, keepChildren, s, setAttribute, setText } from "./dom.js";
import { about, bytes } from "./format.js";
import { link } from "./router.js";
import { verdictShade, verdictWord } from "./verdict.js";

const BOX = { width: 128, height: 46 };
/** With more, or with more than a pair on a narrow screen, labels would lie over each other; the table has the figures. */
const LABELLED_FLOWS_MAX = 12;
const NARROW_PX = 480;
/** How far an arrow bends aside: the way back and further flows of the same pair take curves of their own. */
const BEND_PX = 34;
/** Nearer to where it comes from: in the middle several would meet. */
const LABEL_AT = 0.4;
const WIDTH_MIN = 300;
const HEIGHT_MAX = 440;

export class Topology {
  #drawing = s("svg", { class: "topology", role: "group", "aria-label": "Map of clusters and flows" });
  #arrows = s("g");
  #boxes = s("g");
  #bootstraps = new Map();
  #flows = [];
  #observer = new ResizeObserver(() => this.show(this.#flows));

  constructor() {
    this.#drawing.append(arrowHead(), this.#arrows, this.#boxes);
    this.node = h("div", { class: "map" }, this.#drawing);
    this.#observer.observe(this.node);
  }

  /** Addresses of the clusters, for their boxes. */
  name(clusters) {
    this.#bootstraps = new Map(clusters.map((one) => [one.alias, one.bootstrap]));
    this.show(this.#flows);
  }

  show(flows) {
    this.#flows = flows;
    const width = Math.max(WIDTH_MIN, this.node.clientWidth);
    const aliases = [...new Set(flows.flatMap((flow) => [flow.source, flow.target]))];
    const { places, height } = placesOf(aliases, width);
    setAttribute(this.#drawing, "viewBox", `0 0 ${width} ${height}`);
    setAttribute(this.#drawing, "height", height);
    keepChildren(this.#boxes, aliases, (alias) => alias, makeBox, (node, alias) => {
      this.#fillBox(node, alias, places.get(alias));
    });
    const bends = bendsOf(flows);
    const isLabelled = flows.length <= (width < NARROW_PX ? 2 : LABELLED_FLOWS_MAX);
    keepChildren(this.#arrows, flows, (flow) => flow.flow, makeArrow, (node, flow) => {
      fillArrow(node, flow, places, bends.get(flow.flow), isLabelled);
    });
  }

  end() {
    this.#observer.disconnect();
  }

  #fillBox(node, alias, { x, y }) {
    const bootstrap = this.#bootstraps.get(alias) ?? [];
    const [, name, address, title] = node.children;
    setAttribute(node, "transform", `translate(${Math.round(x)} ${Math.round(y)})`);
    setText(name, shortened(alias, 15));
    setText(address, shortened(bootstrap[0] ?? "", 20));
    setText(title, [alias, ...bootstrap].join("\n"));
  }
}

const shortened = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function arrowHead() {
  const shape = s("path", { d: "M0 0 8 4 0 8z", fill: "context-stroke" });
  const tip = { refX: 7, refY: 4, orient: "auto" };
  const size = { viewBox: "0 0 8 8", markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse" };
  return s("defs", {}, s("marker", { id: "arrow-head", ...tip, ...size }, shape));
}

/**
 * The first on the left, the others around an ellipse that fills the width; two side by side, or one above the other where
 * it is narrow.
 */
function placesOf(aliases, width) {
  const isStacked = aliases.length === 2 && width < NARROW_PX;
  const turn = isStacked ? -Math.PI / 2 : Math.PI;
  const angles = aliases.map((_, index) => turn + (2 * Math.PI * index) / aliases.length);
  const margin = { x: BOX.width / 2 + 8, y: BOX.height / 2 + 8 + (aliases.length === 2 && !isStacked ? BEND_PX : 0) };
  const round = Math.min(HEIGHT_MAX, Math.max(190, aliases.length * 52));
  const height = 2 * margin.y + (aliases.length > 2 ? round : isStacked ? 180 : 0);
  const xs = spread(angles.map(Math.cos), margin.x, width - margin.x);
  const ys = spread(angles.map(Math.sin), margin.y, height - margin.y);
  return { places: new Map(aliases.map((alias, index) => [alias, { x: xs[index], y: ys[index] }])), height };
}

/** The values over the whole way from one end to the other; in the middle where they are all the same. */
function spread(values, from, to) {
  const least = Math.min(...values);
  const range = Math.max(...values) - least;
  return values.map((value) => (range < 1e-9 ? (from + to) / 2 : from + ((value - least) / range) * (to - from)));
}

/** Which bend each flow takes, counted per direction of a pair. */
function bendsOf(flows) {
  const taken = new Map();
  return new Map(
    flows.map((flow) => {
      const pair = `${flow.source}\n${flow.target}`;
      const bend = (taken.get(pair) ?? 0) + 1;
      taken.set(pair, bend);
      return [flow.flow, bend];
    }),
  );
}

function makeBox() {
  const { width, height } = BOX;
  return s(
    "g",
    { class: "cluster" },
    s("rect", { x: -width / 2, y: -height / 2, width, height, rx: 8 }),
    s("text", { y: -3, class: "alias" }),
    s("text", { y: 14, class: "bootstrap" }),
    s("title"),
  );
}

function makeArrow(flow) {
  return s(
    "a",
    { class: "flow", href: link("flows", flow.flow) },
    s("path", { class: "reach", fill: "none" }),
    s("path", { class: "line", fill: "none", "marker-end": "url(#arrow-head)" }),
    s("text", { class: "rate" }),
    s("text", { class: "lag" }),
  );
}

function fillArrow(node, flow, places, bend, isLabelled) {
  const curve = curveOf(places.get(flow.source), places.get(flow.target), bend);
  const [reach, line, rate, lag] = node.children;
  setAttribute(node, "data-shade", verdictShade(flow));
  setAttribute(node, "data-moves", String(verdictShade(flow) !== "quiet" && flow.records_per_s > 0));
  const rateWords = flow.carries ? `${bytes(flow.bytes_per_s)}/s` : "heartbeats";
  const lagWords = flow.carries ? `lag ${about(flow.lag_records)}` : "";
  setAttribute(node, "aria-label", [flow.flow, verdictWord(flow), rateWords, lagWords].filter(Boolean).join(", "));
  setAttribute(reach, "d", curve.path);
  setAttribute(line, "d", curve.path);
  place(rate, curve.label, -4, isLabelled ? rateWords : "");
  place(lag, curve.label, 11, isLabelled ? lagWords : "");
}

function place(text, { x, y }, down, words) {
  setAttribute(text, "x", Math.round(x));
  setAttribute(text, "y", Math.round(y + down));
  setText(text, words);
}

/** A curve from border to border of two boxes; to the left of its direction. */
function curveOf(from, to, bend) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const aside = { x: (to.y - from.y) / length, y: -(to.x - from.x) / length };
  const out = BEND_PX * 2 * bend;
  const control = { x: (from.x + to.x) / 2 + aside.x * out, y: (from.y + to.y) / 2 + aside.y * out };
  const start = onBorder(from, control);
  const end = onBorder(to, control);
  const path = [start, control, end].map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return { path: `M${path[0]}Q${path[1]} ${path[2]}`, label: alongCurve(start, control, end, LABEL_AT) };
}

function alongCurve(start, control, end, part) {
  const at = (axis) => (1 - part) ** 2 * start[axis] + 2 * part * (1 - part) * control[axis] + part ** 2 * end[axis];
  return { x: at("x"), y: at("y") };
}

/** Where the way from a box's middle to a point leaves the box. */
function onBorder(box, point) {
  const dx = point.x - box.x;
  const dy = point.y - box.y;
  const scale = Math.min(1, (BOX.width / 2 + 3) / Math.abs(dx || 1), (BOX.height / 2 + 3) / Math.abs(dy || 1));
  return { x: box.x + dx * scale, y: box.y + dy * scale };
}
