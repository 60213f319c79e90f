/**
 * A table whose rows are kept by key, so that a refresh moves nothing under the reader's finger. On a phone its rows become
 * cards (style/tables.css); the roles say what it is in either form.
 */

import { h, keepChildren, setAttribute, setText } from "./dom.js";

/**
 * A column: `title`; `text(row)` or `fill(cell, row)`; `isFigure` for numbers, `isName` for what should not be broken;
 * `sort`, the name by which the list is sorted; `descends` where the largest comes first.
 */
export class Table {
  #columns;
  #keyOf;
  #body = h("tbody", { role: "rowgroup" });
  #heads;

  constructor({ caption, columns, keyOf, onSort = () => {} }) {
    this.#columns = columns;
    this.#keyOf = keyOf;
    this.#heads = columns.map((column) => head(column, onSort));
    this.node = h(
      "table",
      { role: "table" },
      h("caption", { class: "unseen" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, this.#heads)),
      this.#body,
    );
  }

  show(rows, sort = "") {
    this.#columns.forEach((column, index) => {
      if (column.sort) {
        const order = column.descends ? "descending" : "ascending";
        setAttribute(this.#heads[index], "aria-sort", column.sort === sort ? order : "none");
      }
    });
    keepChildren(this.#body, rows, this.#keyOf, () => this.#row(), (node, row) => this.#fill(node, row));
  }

  #row() {
    return h(
      "tr",
      { role: "row" },
      this.#columns.map((column, index) =>
        h(index === 0 ? "th" : "td", {
          role: index === 0 ? "rowheader" : "cell",
          scope: index === 0 ? "row" : null,
          class: classOf(column),
          "data-title": column.title,
        }),
      ),
    );
  }

  #fill(node, row) {
    this.#columns.forEach((column, index) => {
      const cell = node.children[index];
      if (column.fill) {
        column.fill(cell, row);
      } else {
        setText(cell, column.text(row));
      }
    });
  }
}

function head(column, onSort) {
  const content = column.sort
    ? h("button", { type: "button", class: "sort", onclick: () => onSort(column.sort) }, column.title)
    : column.title;
  return h("th", { role: "columnheader", scope: "col", class: classOf(column) }, content);
}

function classOf({ isFigure, isName }) {
  return isFigure ? "figure" : isName ? "name" : null;
}

/** Makes `text` a link in a cell. */
export function fillLink(cell, text, href) {
  const link = cell.firstElementChild ?? cell.appendChild(h("a"));
  setAttribute(link, "href", href);
  setText(link, text);
}

/** A word with a shade of good or bad in a cell: `good`, `quiet`, `warning`, `bad`. */
export function fillTag(cell, text, shade) {
  const tag = cell.firstElementChild ?? cell.appendChild(h("span", { class: "tag" }));
  setAttribute(tag, "data-shade", shade);
  setText(tag, text);
}

/** A button in a cell; `hidden` where there is nothing to press. */
export function fillButton(cell, text, label, { isShown, press }) {
  const button = cell.firstElementChild ?? cell.appendChild(h("button", { type: "button", class: "acts" }));
  setText(button, text);
  setAttribute(button, "aria-label", label);
  setAttribute(button, "hidden", !isShown);
  button.onclick = press;
}
