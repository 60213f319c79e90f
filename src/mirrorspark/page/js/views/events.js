/**
 * What nobody has acknowledged yet: of one flow, or of all.
 */

import { mayChange } from "../about.js";
import { ask } from "../api.js";
import { confirmed, say } from "../confirm.js";
import { h, setAttribute } from "../dom.js";
import { count, counted, dateAndTime } from "../format.js";
import { Listing } from "../listing.js";
import { link } from "../router.js";
import { fillButton, fillLink, fillTag } from "../table.js";

const REFRESH_MS = 2_000;
const MEANING = "What is acknowledged is no longer shown, and its flow no longer degraded by it. Its cause is not undone.";

/** The events of all flows. */
export function eventsView() {
  const part = eventsOf(null);
  return { ...part, node: h("div", {}, h("h1", { tabindex: "-1" }, "Events"), part.node), title: "Events" };
}

/** `id` null: of all flows. */
export function eventsOf(id) {
  const path = id === null ? ["events"] : ["flows", id, "events"];
  const all = h("button", { type: "button", hidden: true, onclick: () => acknowledge(id, null) }, "Acknowledge all…");
  const listing = new Listing({
    caption: id === null ? "Events" : `Events of ${id}`,
    noun: "event",
    columns: columnsOf(id, acknowledge),
    keyOf: (event) => `${event.flow} ${event.key}`,
    refreshMs: REFRESH_MS,
    tools: [all],
    load: async ({ signal, offset, limit }) => {
      const found = await ask(path, { query: { offset, limit }, signal });
      setAttribute(all, "hidden", found.total === 0 || !mayChange());
      return { rows: found.events, matched: found.total, total: found.total };
    },
  });

  async function acknowledge(flow, event) {
    const all = `all events of ${flow ?? "all flows"}`;
    const title = `Acknowledge ${event === null ? all : `${event.kind} ${placeOf(event)}`}?`;
    if (!(await confirmed({ title, text: MEANING, yes: "Acknowledge" }))) {
      return;
    }
    try {
      const body = { keys: event === null ? ["all"] : [event.key], ...(flow === null ? {} : { flow }) };
      const { acknowledged } = await ask(["events", "acknowledge"], { method: "POST", body });
      say(`${counted(acknowledged.length, "event")} acknowledged`);
    } catch (error) {
      say(`Not acknowledged: ${error.message}`);
    }
    await listing.reload();
  }

  return { node: listing.node, end: () => listing.end() };
}

function columnsOf(id, acknowledge) {
  const ofFlow = (cell, event) => fillLink(cell, event.flow, link("flows", event.flow));
  return [
    { title: "When", isName: true, text: (event) => dateAndTime(event.at_ms) },
    ...(id === null ? [{ title: "Flow", isName: true, fill: ofFlow }] : []),
    { title: "Event", fill: fillKind },
    { title: "Where", text: placeOf },
    { title: "What happened", text: (event) => event.text },
    {
      title: "Acknowledge",
      fill: (cell, event) =>
        fillButton(cell, "Acknowledge…", `Acknowledge ${event.kind} ${placeOf(event)}`, {
          isShown: mayChange(),
          press: () => acknowledge(event.flow, event),
        }),
    },
  ];
}

/** Worse where a partition waits because of it. */
function fillKind(cell, { kind, waits }) {
  fillTag(cell, waits ? `${kind}, waits` : kind, waits ? "bad" : "warning");
}

function placeOf({ topic, partition, offset_first: first, offset_last: last }) {
  const place = partition < 0 ? topic : `${topic}-${partition}`;
  return first < 0 ? place : `${place}, offsets ${count(first)} to ${count(last)}`;
}
