/**
 * Figures in words. What is not known is a dash, never a nought.
 */

export const UNKNOWN = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const date = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const SECONDS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

const isKnown = (value) => value !== null && value !== undefined && Number.isFinite(value);
const known = (format) => (value) => (isKnown(value) ? format(value) : UNKNOWN);

/** 1,234,567: an offset or a count that must be exact. */
export const count = known((value) => whole.format(value));

/** 1.2, 1,234, 1.2M: a figure that is only looked at. */
export const about = known((value) => (value < 100 ? tenths : value < 10_000 ? whole : short).format(value));

/** 12.3 MB */
export const bytes = known((value) => {
  let unit = 0;
  let size = value;
  while (Math.abs(size) >= 1_000 && unit < BYTE_UNITS.length - 1) {
    size /= 1_000;
    unit += 1;
  }
  return `${unit > 0 && size < 100 ? size.toFixed(1) : whole.format(size)} ${BYTE_UNITS[unit]}`;
});

/** 250 ms, 12.5 s, 3.0 min */
export const milliseconds = known((value) => (value < 1_000 ? `${Math.round(value)} ms` : seconds(value / 1_000)));

/** 4.2 s, 3.0 min, 1.5 h */
export const seconds = known((value) => {
  const [size, unit] = SECONDS.find(([least]) => value >= least) ?? [1, "s"];
  const amount = value / size;
  return `${amount === 0 ? "0" : amount.toFixed(amount < 100 ? 1 : 0)} ${unit}`;
});

/** 4.2 s ago */
export const ago = known((value) => `${seconds(value)} ago`);

/** 14:03:59, of a Unix time in ms */
export const timeOfDay = known((value) => clock.format(value));

/** 2026-11-16 14:03:59 */
export const dateAndTime = known((value) => date.format(value));

/** "1 topic", "2 topics" */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
