/**
 * Puts the page together: one view at a time, by the address; the live snapshot goes to the view that is shown.
 */

import { prepareAbout } from "./about.js";
import { prepareConnection } from "./connection.js";
import { setAttribute } from "./dom.js";
import { keepHistory } from "./history.js";
import { live } from "./live.js";
import { currentParts } from "./router.js";
import { prepareSession } from "./session.js";
import { eventsView } from "./views/events.js";
import { flowView } from "./views/flow.js";
import { overview } from "./views/overview.js";

const content = document.getElementById("content");
let shown = null;

function viewOf([first, ...rest]) {
  if (first === "flows" && rest.length > 0) {
    return flowView(...rest);
  }
  return first === "events" ? eventsView() : overview();
}

function show() {
  const parts = currentParts();
  shown?.end();
  shown = viewOf(parts);
  content.replaceChildren(shown.node);
  document.title = `${shown.title} · mirrorspark`;
  const route = parts[0] === "events" ? "events" : "overview";
  document.querySelectorAll("[data-route]").forEach((link) => {
    setAttribute(link, "aria-current", link.dataset.route === route ? "page" : null);
  });
  update();
}

function update() {
  if (live.receivedAtMs !== null) {
    shown.update?.();
  }
}

/** Once: how long it took until there was something to see, for whoever measures. */
function markComplete() {
  performance.mark("mirrorspark-complete");
}

prepareSession();
prepareConnection();
prepareAbout();
keepHistory();
show();
live.addEventListener("snapshot", update);
live.addEventListener("connection", update);
live.addEventListener("rights", update);
live.addEventListener("snapshot", markComplete, { once: true });
addEventListener("hashchange", () => {
  show();
  content.querySelector("h1").focus(); // whoever cannot see is told where they are now
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address is not one of a view
  content.focus();
});
live.start();
