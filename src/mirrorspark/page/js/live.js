/**
 * The newest snapshot of all flows, and whether it is live. Nothing else knows of the stream. Views listen to "snapshot",
 * "connection" (it broke, or is back) and "rights" (what one may do is known, see about.js).
 *
 * What was received before the connection broke stays to be looked at, but is never called live: `isLive` is false from the
 * moment on that the break is noticed, and the page says since when.
 */

import { address } from "./api.js";
import { EventStream } from "./stream.js";

class Live extends EventTarget {
  isLive = false;
  /** When the newest snapshot came, by this machine's clock; null before the first. */
  receivedAtMs = null;
  flows = [];
  /** Why there is no connection; empty while there is one. */
  trouble = "";
  #stream = null;

  start() {
    this.#stream = new EventStream(address("stream"), {
      onEvent: (name, value) => (name === "flows" ? this.#take(value) : this.#lose("the server is ending")),
      onAway: (message) => this.#lose(message),
    });
    this.#stream.run();
  }

  tryNow() {
    this.#stream.tryNow();
  }

  flow(id) {
    return this.flows.find((one) => one.flow === id) ?? null;
  }

  #take({ flows }) {
    this.flows = flows;
    this.receivedAtMs = Date.now();
    this.trouble = "";
    const isBack = !this.isLive;
    this.isLive = true;
    if (isBack) {
      this.dispatchEvent(new Event("connection"));
    }
    this.dispatchEvent(new Event("snapshot"));
  }

  #lose(message) {
    const isNews = this.isLive || this.trouble !== message;
    this.isLive = false;
    this.trouble = message;
    if (isNews) {
      this.dispatchEvent(new Event("connection"));
    }
  }
}

export const live = new Live();
