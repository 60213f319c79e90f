/**
 * Asks before something is changed, and tells what came of it.
 */

import { setText } from "./dom.js";

const SAID_MS = 10_000;

let forgetting = null;

/** Resolves to whether the answer was yes. Escape is no. The question waits on Cancel. */
export function confirmed({ title, text, yes }) {
  const dialog = document.getElementById("confirm");
  setText(document.getElementById("confirm-title"), title);
  setText(document.getElementById("confirm-text"), text);
  setText(document.getElementById("confirm-yes"), yes);
  dialog.showModal();
  return new Promise((resolve) => {
    const heard = new AbortController();
    const answer = (isYes) => {
      heard.abort();
      resolve(isYes);
    };
    // Not "close": that comes later, and might answer a question that was asked meanwhile.
    dialog.addEventListener("submit", (event) => answer(event.submitter?.value === "yes"), { signal: heard.signal });
    dialog.addEventListener("cancel", () => answer(false), { signal: heard.signal });
  });
}

/** One line at the page's foot, read out by screen readers. */
export function say(text) {
  const line = document.getElementById("said");
  clearTimeout(forgetting);
  setText(line, text);
  forgetting = setTimeout(() => setText(line, ""), SAID_MS);
}
