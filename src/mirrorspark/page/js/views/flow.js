/**
 * One flow: its state, pause and resume, and the way to its parts. Each part is a view of its own below.
 */

import { mayChange } from "../about.js";
import { h, setAttribute, setText } from "../dom.js";
import { live } from "../live.js";
import { changePause } from "../pausing.js";
import { link } from "../router.js";
import { verdictShade, verdictWord } from "../verdict.js";
import { configView } from "./config.js";
import { eventsOf } from "./events.js";
import { groupView } from "./group.js";
import { groupsView } from "./groups.js";
import { liveView } from "./live.js";
import { partitionsView } from "./partitions.js";
import { topicsView } from "./topics.js";

/** Part of the address -> title and view. */
const PARTS = {
  live: ["Live", liveView],
  topics: ["Topics", topicsView],
  partitions: ["Partitions", partitionsView],
  groups: ["Groups", (flow, group) => (group ? groupView(flow, group) : groupsView(flow))],
  events: ["Events", eventsOf],
  config: ["Config", configView],
};

export function flowView(id, name = "live", ...more) {
  const current = Object.hasOwn(PARTS, name) ? name : "live";
  const [title, make] = PARTS[current];
  const part = make(id, ...more);
  const state = h("span", { class: "tag" });
  const pause = h("button", { type: "button", onclick: () => changePause("pause", id) }, "Pause…");
  const resume = h("button", { type: "button", onclick: () => changePause("resume", id) }, "Resume…");
  const gone = h("p", { class: "trouble", role: "alert", hidden: true }, `There is no flow ${id} on this server.`);
  const links = Object.keys(PARTS).map((key) => partLink(id, key, key === current));
  const node = h(
    "div",
    {},
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, id), state, h("span", { class: "buttons" }, pause, resume)),
    h("nav", { class: "parts", "aria-label": `Parts of ${id}` }, links),
    gone,
    part.node,
  );

  function update() {
    const flow = live.flow(id);
    setAttribute(gone, "hidden", flow !== null || live.receivedAtMs === null);
    setAttribute(state, "hidden", flow === null);
    const isSteered = flow !== null && flow.carries && mayChange();
    setAttribute(pause, "hidden", !isSteered || flow.is_paused);
    setAttribute(resume, "hidden", !isSteered || flow.paused.length === 0);
    if (flow !== null) {
      setText(state, verdictWord(flow));
      setAttribute(state, "data-shade", verdictShade(flow));
      part.update?.(flow);
    }
  }

  return { node, title: `${id} ${title.toLowerCase()}`, update, end: () => part.end?.() };
}

function partLink(id, key, isCurrent) {
  return h("a", { href: link("flows", id, key), "aria-current": isCurrent ? "page" : null }, PARTS[key][0]);
}
