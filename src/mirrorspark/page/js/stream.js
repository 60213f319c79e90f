/**
 * Server-sent events over fetch: the browser's EventSource can send no Authorization header, and does not say why it failed.
 * Comes back by itself after an end, an error or a silence, at growing intervals.
 */

import { ApiError, send } from "./api.js";

const SILENT_MS_MAX = 10_000;
const AGAIN_MS_FIRST = 500;
const AGAIN_MS_MAX = 5_000;

/** The event of a block of lines; null for a comment. */
function parseEvent(block) {
  const fields = { event: "message", data: null };
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (name in fields) {
      fields[name] = name === "data" && fields.data !== null ? `${fields.data}\n${value}` : value;
    }
  }
  return fields.data === null ? null : fields;
}

/** `onEvent(name, value)`, `onAway(message, againMs)`; `onEvent` after `onAway` says that it is back. */
export class EventStream {
  #url;
  #onEvent;
  #onAway;
  #wake = () => {};
  #failures = 0;

  constructor(url, { onEvent, onAway }) {
    this.#url = url;
    this.#onEvent = onEvent;
    this.#onAway = onAway;
  }

  async run() {
    addEventListener("online", () => this.tryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.tryNow());
    for (;;) {
      const message = await this.#listen();
      const againMs = Math.min(AGAIN_MS_MAX, AGAIN_MS_FIRST * 2 ** this.#failures);
      this.#failures += 1;
      this.#onAway(message, againMs);
      await this.#pause(againMs);
    }
  }

  /** Ends the wait for the next attempt. */
  tryNow() {
    this.#wake();
  }

  #pause(ms) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, ms);
    });
  }

  /** Until it ends; returns why. */
  async #listen() {
    const abort = new AbortController();
    const silence = new Silence(SILENT_MS_MAX, () => abort.abort());
    try {
      silence.begin();
      const answer = await send(this.#url, { headers: { Accept: "text/event-stream" }, signal: abort.signal });
      await this.#read(answer.body, silence);
      return "the server ended the connection";
    } catch (error) {
      return error instanceof ApiError && !abort.signal.aborted ? error.message : "the server has become silent";
    } finally {
      silence.end();
      abort.abort();
    }
  }

  async #read(body, silence) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      silence.begin();
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const { event, data } of blocks.map(parseEvent).filter(Boolean)) {
        this.#failures = 0;
        this.#onEvent(event, JSON.parse(data));
      }
    }
  }
}

/** Calls when nothing began anew for so long. */
class Silence {
  #timer = null;

  constructor(ms, call) {
    this.ms = ms;
    this.call = call;
  }

  begin() {
    this.end();
    this.#timer = setTimeout(this.call, this.ms);
  }

  end() {
    clearTimeout(this.#timer);
  }
}
