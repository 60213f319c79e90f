/**
 * A chart of the last minutes. uPlot draws; captions in the document say the same in words.
 */

import uPlot from "../vendor/uplot/uPlot.esm.js";
import { h, setText } from "./dom.js";
import { timeOfDay, UNKNOWN } from "./format.js";

const HEIGHT = 180;
const WIDTH_MIN = 200;
const SPAN_S_MAX = 300;
const SPAN_S_MIN = 60;
const AXIS_PX = 62;
const FONT = "12px system-ui, sans-serif";

/** `series`: `{name, figure, words}`, one or two; each has a scale of its own, left and right. */
export class Chart {
  #series;
  #values;
  #plot = null;
  #frame = h("div", { class: "plot", "aria-hidden": "true" });
  #history = null;
  #observer = new ResizeObserver(() => this.#resize());
  #recolour = () => this.#plot?.redraw(false, true);

  constructor({ title, series }) {
    this.#series = series;
    this.#values = series.map(() => h("span", { class: "value" }, UNKNOWN));
    const legend = series.map((one, index) =>
      h("li", {}, h("span", { class: `marker line-${index}` }), `${one.name} `, this.#values[index]),
    );
    const caption = h("figcaption", {}, h("h3", {}, title), h("ul", { class: "legend" }, legend));
    this.node = h("figure", { class: "chart" }, caption, this.#frame);
    this.#observer.observe(this.#frame);
    document.addEventListener("colours", this.#recolour);
  }

  show(history) {
    this.#history = history;
    this.#plot ??= this.#frame.clientWidth ? new uPlot(this.#options(), this.#data(), this.#frame) : null;
    this.#plot?.setData(this.#data());
    this.#tell(this.#plot?.cursor.idx ?? null);
  }

  end() {
    this.#observer.disconnect();
    document.removeEventListener("colours", this.#recolour);
    this.#plot?.destroy();
  }

  #data() {
    return [this.#history.times, ...this.#series.map((one) => this.#history[one.figure])];
  }

  /** The values under the pointer, or the newest. */
  #tell(index) {
    this.#series.forEach((one, at) => {
      const values = this.#history[one.figure];
      setText(this.#values[at], one.words(values[index ?? values.length - 1]));
    });
  }

  #resize() {
    if (this.#plot) {
      this.#plot.setSize({ width: this.#width(), height: HEIGHT });
    } else if (this.#history) {
      this.show(this.#history);
    }
  }

  #width() {
    return Math.max(WIDTH_MIN, this.#frame.clientWidth);
  }

  #options() {
    const isPair = this.#series.length > 1;
    const fromNought = { range: (_plot, _least, most) => [0, (most || 1) * 1.1] };
    return {
      width: this.#width(),
      height: HEIGHT,
      padding: [8, isPair ? 0 : 12, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 6 }, y: false },
      hooks: { setCursor: [(plot) => this.#history && this.#tell(plot.cursor.idx)] },
      scales: {
        x: { time: true, range: (_plot, least, most) => [most - spanOf(least, most), most] },
        ...Object.fromEntries(this.#series.map((_, at) => [`y${at}`, fromNought])),
      },
      series: [{}, ...this.#series.map((_, at) => this.#line(at))],
      axes: [this.#timeAxis(), ...this.#series.map((one, at) => this.#axis(one, at))],
    };
  }

  #line(at) {
    return {
      scale: `y${at}`,
      stroke: () => this.#colour(`.line-${at}`),
      width: 2,
      dash: at ? [5, 4] : undefined,
      points: { show: false },
      spanGaps: false,
    };
  }

  #timeAxis() {
    return {
      ...this.#look(),
      size: 28,
      space: 80,
      values: (_plot, times) => times.map((time) => timeOfDay(time * 1_000)),
    };
  }

  #axis(one, at) {
    return {
      ...this.#look(),
      scale: `y${at}`,
      side: at ? 1 : 3,
      size: AXIS_PX,
      grid: { show: at === 0, stroke: () => this.#colour(".plot", "border-top-color"), width: 1 },
      values: (_plot, values) => values.map((value) => (value === 0 ? "0" : one.words(value).replace(".0 ", " "))),
    };
  }

  #look() {
    const line = { stroke: () => this.#colour(".plot", "border-top-color"), width: 1 };
    return { stroke: () => this.#colour(".legend"), grid: line, ticks: line, font: FONT };
  }

  /** Colours are the stylesheet's; a canvas has to be told. */
  #colour(selector, property = "color") {
    const node = this.node.querySelector(selector);
    return getComputedStyle(node).getPropertyValue(property);
  }
}

/** As long as there is something to show, within bounds. */
function spanOf(least, most) {
  return Math.min(SPAN_S_MAX, Math.max(SPAN_S_MIN, most - least));
}
