/**
 * A list that may be long: search, sort, pages, refreshed while it is looked at. Shows one page only, so that 5,000
 * partitions cost no more than 50.
 */

import { h, setAttribute, setText } from "./dom.js";
import { count } from "./format.js";
import { live } from "./live.js";
import { Table } from "./table.js";

const PAGE_ROWS = 50;
const TYPING_MS = 150;

/**
 * `load({search, sort, offset, limit, signal})` resolves to `{rows, matched, total}`; `noun` is what a row is ("partition");
 * `searchLabel` empty: no search. `refreshMs`: how often it is asked anew; 0: never.
 */
export class Listing {
  #load;
  #noun;
  #query;
  #table;
  #timer;
  #typing = null;
  #pending = null;
  #matched = 0;
  #shown = [];
  #count = h("p", { class: "count", role: "status" });
  #trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  #back = h("button", { type: "button", onclick: () => this.#turn(-1) }, "Previous");
  #on = h("button", { type: "button", onclick: () => this.#turn(1) }, "Next");
  #pager = h("nav", { class: "pager", hidden: true }, this.#back, this.#on);

  constructor({ caption, noun, columns, keyOf, load, searchLabel = "", search = "", sort = "", refreshMs = 0, tools = [] }) {
    this.#load = load;
    this.#noun = noun;
    this.#query = { search, sort, offset: 0, limit: PAGE_ROWS };
    this.#table = new Table({ caption, columns, keyOf, onSort: (name) => this.#ask({ sort: name, offset: 0 }) });
    this.#pager.setAttribute("aria-label", `Pages of ${caption}`);
    const box = searchLabel ? this.#searchBox(searchLabel) : null;
    this.node = h(
      "section",
      { class: "listing", "aria-label": caption },
      h("div", { class: "tools" }, box, ...tools, this.#count),
      this.#trouble,
      this.#table.node,
      this.#pager,
    );
    this.#timer = refreshMs ? setInterval(() => this.#refresh(), refreshMs) : null;
    live.addEventListener("connection", this.#followConnection);
    live.addEventListener("rights", this.#showAgain);
    this.reload();
  }

  reload() {
    return this.#ask({});
  }

  end() {
    live.removeEventListener("connection", this.#followConnection);
    live.removeEventListener("rights", this.#showAgain);
    clearInterval(this.#timer);
    clearTimeout(this.#typing);
    this.#pending?.abort();
  }

  /** Anew at once when the server is back; what a server that is away cannot do is not offered. */
  #followConnection = () => {
    if (!live.isLive) {
      this.#showAgain();
    } else if (this.#pending === null) {
      this.reload();
    }
  };

  #showAgain = () => this.#table.show(this.#shown, this.#query.sort);

  #searchBox(label) {
    const typed = (event) => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#ask({ search: event.target.value.trim(), offset: 0 }), TYPING_MS);
    };
    const box = h("input", { type: "search", value: this.#query.search, spellcheck: "false", oninput: typed });
    return h("label", { class: "search" }, label, box);
  }

  #turn(pages) {
    this.#ask({ offset: Math.max(0, this.#query.offset + pages * PAGE_ROWS) });
  }

  #refresh() {
    if (live.isLive && !document.hidden && this.#pending === null) {
      this.reload();
    }
  }

  async #ask(change) {
    Object.assign(this.#query, change);
    this.#pending?.abort();
    const pending = new AbortController();
    this.#pending = pending;
    try {
      this.#show(await this.#load({ ...this.#query, signal: pending.signal }), pending);
    } catch (error) {
      this.#fail(error, pending);
    } finally {
      if (this.#pending === pending) {
        this.#pending = null;
      }
    }
  }

  #show({ rows, matched, total }, pending) {
    if (pending.signal.aborted) {
      return;
    }
    const { sort, offset, search } = this.#query;
    if (rows.length === 0 && matched > 0 && offset > 0) {
      this.#ask({ offset: Math.floor((matched - 1) / PAGE_ROWS) * PAGE_ROWS }); // the list has become shorter
      return;
    }
    this.#matched = matched;
    this.#shown = rows;
    this.#table.show(rows, sort);
    setText(this.#count, this.#words(rows.length, matched, total, search));
    setAttribute(this.#trouble, "hidden", true);
    setAttribute(this.node, "data-stale", false);
    this.#showPager(offset, rows.length);
  }

  #words(shown, matched, total, search) {
    if (total === 0) {
      return `no ${this.#noun}s`;
    }
    const range = shown < matched ? `${count(this.#query.offset + 1)}–${count(this.#query.offset + shown)} of ` : "";
    const all = `${range}${count(matched)} ${this.#noun}${matched === 1 ? "" : "s"}`;
    return search && matched < total ? `${all} found, of ${count(total)}` : all;
  }

  #showPager(offset, shown) {
    setAttribute(this.#pager, "hidden", shown >= this.#matched);
    this.#back.disabled = offset === 0;
    this.#on.disabled = offset + shown >= this.#matched;
  }

  /** What is shown stays, but is no longer said to be current. */
  #fail(error, pending) {
    if (pending.signal.aborted) {
      return;
    }
    setText(this.#trouble, `${this.#noun}s: ${error.message}`);
    setAttribute(this.#trouble, "hidden", false);
    setAttribute(this.node, "data-stale", true);
  }
}

/** One page of rows that are all here already. `matches(row, words)` is asked where something is searched for. */
export function pageOf(all, { search, offset, limit }, matches) {
  const words = search.toLowerCase();
  const found = words ? all.filter((row) => matches(row, words)) : all;
  return { rows: found.slice(offset, offset + limit), matched: found.length, total: all.length };
}
