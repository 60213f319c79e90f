/**
 * Each value that counts for a flow, and where it came from.
 */

import { ask } from "../api.js";
import { h } from "../dom.js";
import { UNKNOWN } from "../format.js";
import { Listing, pageOf } from "../listing.js";

const COLUMNS = [
  { title: "Key", text: (row) => row.name },
  { title: "Value", text: (row) => row.value ?? UNKNOWN },
  { title: "Counts for", text: (row) => row.level },
  { title: "Comes from", text: (row) => row.origin },
];

export function configView(id) {
  const onlySet = h("input", { type: "checkbox", onchange: () => listing.reload() });
  const listing = new Listing({
    caption: `Configuration of ${id}`,
    noun: "key",
    searchLabel: "Search keys and values",
    columns: COLUMNS,
    keyOf: (row) => row.name,
    tools: [h("label", {}, onlySet, " without defaults")],
    load: async (query) => {
      const { settings } = await ask(["flows", id, "config"], { signal: query.signal });
      const shown = onlySet.checked ? settings.filter((row) => !row.is_default) : settings;
      return pageOf(shown, query, (row, words) => `${row.name} ${row.value} ${row.origin}`.toLowerCase().includes(words));
    },
  });
  return { node: listing.node, end: () => listing.end() };
}
