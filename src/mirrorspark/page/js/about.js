/**
 * What the server is and what we may do there. Asked anew whenever a connection is made: after a restart both may differ.
 */

import { ask } from "./api.js";
import { setAttribute, setText } from "./dom.js";
import { say } from "./confirm.js";
import { live } from "./live.js";

let about = null;

/** Whether buttons that change something are of use: with the right role, and while somebody is there to obey. */
export function mayChange() {
  return live.isLive && about?.role === "operator";
}

export function prepareAbout() {
  live.addEventListener("connection", async () => {
    if (!live.isLive) {
      return;
    }
    try {
      take(await ask(["about"]));
    } catch (error) {
      say(`The server does not say who it is: ${error.message}`);
    }
  });
}

function take(found) {
  if (about !== null && about.version !== found.version) {
    say(`The server is now version ${found.version}; reload the page.`);
  }
  about = found;
  const role = document.getElementById("role");
  setText(role, found.role);
  setAttribute(role, "hidden", found.is_open || found.role === "operator");
  live.dispatchEvent(new Event("rights"));
}
