/**
 * The last minute of one figure as a line without scales. Its words stand beside it in the table.
 */

import { s, setAttribute } from "./dom.js";

const POINTS = 60;
const WIDTH = 96;
const HEIGHT = 24;

export function sparkline() {
  return s(
    "svg",
    { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" },
    s("path", { fill: "none" }),
  );
}

export function drawSparkline(node, values) {
  setAttribute(node.firstElementChild, "d", path(values.slice(-POINTS)));
}

/** A null is a hole in the line. */
function path(values) {
  const most = Math.max(1, ...values);
  let isDown = false;
  const steps = values.map((value, index) => {
    if (value === null) {
      isDown = false;
      return "";
    }
    const x = ((index + POINTS - values.length) * WIDTH) / (POINTS - 1);
    const y = HEIGHT - 1 - (value / most) * (HEIGHT - 2);
    const step = `${isDown ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
    return step;
  });
  return steps.join("");
}
