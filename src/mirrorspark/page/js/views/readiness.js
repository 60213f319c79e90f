/**
 * "May one fail over now?": the server's own checks, on request, since they ask both clusters.
 */

import { ask } from "../api.js";
import { h, setAttribute, setText } from "../dom.js";
import { timeOfDay } from "../format.js";

const SHADES = { ok: "good", notice: "quiet", stop: "bad" };

export function readiness(id) {
  const mode = h(
    "select",
    {},
    h("option", { value: "cut" }, "the source is lost now"),
    h("option", { value: "drain" }, "a planned move"),
  );
  const button = h("button", { type: "button", onclick: check }, "Check");
  const verdict = h("p", { role: "status" });
  const checks = h("ul", { class: "checks" });

  async function check() {
    button.disabled = true;
    setText(verdict, "asking both clusters…");
    checks.replaceChildren();
    try {
      show(await ask(["flows", id, "readiness"], { query: { mode: mode.value } }));
    } catch (error) {
      setText(verdict, `not known: ${error.message}`);
    }
    button.disabled = false;
  }

  function show(found) {
    setText(verdict, `${found.state}, at ${timeOfDay(found.at_ms)}`);
    setAttribute(verdict, "data-ready", String(found.ready));
    checks.replaceChildren(...found.checks.map(line), ...found.notices.map((text) => h("li", {}, text)));
  }

  return h(
    "section",
    { class: "readiness", "aria-labelledby": "readiness-title" },
    h("h2", { id: "readiness-title" }, "Failover"),
    h("div", { class: "tools" }, h("label", {}, "If ", mode), button, verdict),
    checks,
  );
}

function line({ level, subject, text }) {
  return h("li", {}, h("span", { class: "tag", "data-shade": SHADES[level] ?? "bad" }, level), ` ${subject}: ${text}`);
}
