/**
 * Draws a chart (`chart.py`) in SVG. It imports nothing and writes no style: the page of an MCP App
 * holds its text. Times are UTC.
 */

/** @typedef {{ title: string, kind: "number" | "time" | "band", log?: boolean, unit?: string,
 *   labels?: string[], null?: number, other?: number }} ChartAxis */
/** @typedef {[number | null, number | null, number | null, number | null, number | null]} MarkPlace */
/** @typedef {{ mark: "bar" | "line" | "area" | "point" | "rect", x: ChartAxis, y: ChartAxis,
 *   color?: ChartAxis | null, columns: string[], marks: MarkPlace[], rows: (string | null)[][],
 *   row_count: number, value_axis?: "x" | "y" | null, stack?: string | null, notes?: string[] }} ChartData */
/** A mark by its middle. @typedef {{ x: number, y: number, w: number, h: number }} Spot */
/** @typedef {{ at: (value: number) => number, step: number, ticks: [number, string][], low: number }} Scale */
/** @typedef {{ width: number, dark: boolean }} Look */
/** @typedef {{ label: string, name: string, say?: (text: string) => void, saves?: boolean }} FigureOptions
 * `name`: of files; `saves`: whether files can be saved here */

const SPACE = "http://www.w3.org/2000/svg";
/** Text, muted text, lines */
const INK = { light: ["#1b2430", "#556070", "#dde2e8"], dark: ["#e3e8ee", "#9ca8b8", "#333d49"] };
const COLORS = {
  light: ["#0b6373", "#b3541e", "#5a4fb0", "#8a6d00", "#a8326e", "#2f7d32", "#1f63b5", "#8c4a3a", "#5f6f1e", "#7a3fa0", "#00796b"],
  dark: ["#63c9d6", "#f0a070", "#a9a2f0", "#e8bd68", "#f08ab8", "#83d489", "#86bdf0", "#e0a294", "#bccb74", "#cf9fe8", "#6fd8c6"],
};
const OTHER = "#7f8b9a";
const RAMP = { light: [[214, 236, 240], [6, 70, 84]], dark: [[30, 66, 76], [170, 238, 246]] };
const LETTER = 6.3;
const LINE = 16;
const MOST_LABEL = 28;
const SECOND = 1000;
const DAY = 86_400 * SECOND;
/** @type {[number, number][]} a step in milliseconds, or in months */
const TIME_STEPS = [
  [SECOND, 0], [5 * SECOND, 0], [15 * SECOND, 0], [60 * SECOND, 0], [300 * SECOND, 0], [900 * SECOND, 0], [3600 * SECOND, 0],
  [3 * 3600 * SECOND, 0], [6 * 3600 * SECOND, 0], [DAY, 0], [2 * DAY, 0], [7 * DAY, 0], [30 * DAY, 1], [91 * DAY, 3], [365 * DAY, 12],
  [730 * DAY, 24], [1826 * DAY, 60], [3652 * DAY, 120], [18262 * DAY, 600], [36525 * DAY, 1200],
];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEK = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** @param {string} tag @param {Record<string, string | number>} attributes @param {...(Node | string)} children */
function shape(tag, attributes, ...children) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children @returns {HTMLElementTagNameMap[K]} */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** @param {number} value */
const short = (value) => String(Math.round(value * 10) / 10);

/** A text with its hidden characters named: none may reorder others. @param {string} text */
export const visible = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
  (each) => `‹U+${each.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);

/** @param {string} text @param {number} [most] */
function cut(text, most = MOST_LABEL) {
  const shown = visible(text.slice(0, most + 1));
  return shown.length > most ? `${shown.slice(0, Math.max(1, most - 1))}…` : shown;
}

/** @param {number} value */
function tickText(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-6)) return value.toExponential().replace("+", "");
  for (const [unit, letter] of /** @type {[number, string][]} */ ([[1e12, "T"], [1e9, "G"], [1e6, "M"]])) {
    if (size >= unit) return `${Number((value / unit).toPrecision(6))}${letter}`;
  }
  return Number(value.toPrecision(12)).toLocaleString("en", { maximumFractionDigits: 10 });
}

/** @param {number} low @param {number} high @param {number} most ticks */
function linearSteps(low, high, most) {
  const least = (high - low || Math.abs(high) || 1) / Math.max(most, 1);
  const unit = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= least * 0.999) ?? unit * 10;
}

/** @param {number} low @param {number} high @param {number} step */
function multiples(low, high, step) {
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n <= high / step + 1e-9 && found.length < 100; n += 1) found.push(n * step);
  return found;
}

/** @param {number} milliseconds @param {string} unit @param {number} step between ticks */
function timeText(milliseconds, unit, step) {
  const at = new Date(milliseconds);
  const pad = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const clock = `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}`;
  const month = MONTHS[at.getUTCMonth()];
  const repeated = /** @type {Record<string, string>} */ ({
    month, quarter: `Q${Math.floor(at.getUTCMonth() / 3) + 1}`, day: WEEK[at.getUTCDay()], date: `${at.getUTCDate()}`, hours: clock });
  if (unit in repeated) return repeated[unit];
  if (step >= 365 * DAY) return String(at.getUTCFullYear());
  if (step >= 28 * DAY) return at.getUTCMonth() ? month : String(at.getUTCFullYear());
  if (step >= DAY) return `${month} ${at.getUTCDate()}`;
  const midnight = milliseconds % DAY === 0;
  return midnight ? `${month} ${at.getUTCDate()}` : step < 60 * SECOND ? `${clock}:${pad(at.getUTCSeconds())}` : clock;
}

/** @param {number} low @param {number} high @param {number} most @param {string} unit @returns {[number, string][]} */
function timeTicks(low, high, most, unit) {
  const [step, months] = TIME_STEPS.find(([each]) => (high - low) / each <= most) ?? TIME_STEPS[TIME_STEPS.length - 1];
  if (!months) return multiples(low, high, step).map((value) => [value, timeText(value, unit, step)]);
  const first = new Date(low);
  const found = /** @type {[number, string][]} */ ([]);
  for (let n = Math.floor((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months; found.length < 100; n += months) {
    const at = new Date(0);
    at.setUTCFullYear(Math.floor(n / 12), n % 12, 1);
    const value = at.getTime();
    if (value > high) break;
    if (value >= low) found.push([value, timeText(value, unit, step)]);
  }
  return found;
}

/** The least and greatest place. @param {ChartData} chart @param {0 | 2} place */
function extent(chart, place) {
  let [low, high] = [Infinity, -Infinity];
  for (const mark of chart.marks) {
    for (const value of [mark[place], mark[place + 1]]) {
      if (value === null || value === undefined) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : [0, 1];
}

/** @param {ChartData} chart @param {"x" | "y"} name @param {number} from @param {number} to @returns {Scale} */
function scaleOf(chart, name, from, to) {
  const axis = chart[name];
  const room = Math.abs(to - from);
  if (axis.kind === "band") {
    const labels = axis.labels ?? [];
    const step = room / Math.max(labels.length, 1);
    const at = (/** @type {number} */ value) => (from < to ? from + (value + 0.5) * step : to + (value + 0.5) * step);
    return { at, step, ticks: labels.map((label, index) => [index, label]), low: 0 };
  }
  let [low, high] = extent(chart, name === "x" ? 0 : 2);
  const most = Math.max(2, Math.floor(room / (name === "x" ? 75 : 45)));
  /** @type {[number, string][]} */
  let ticks;
  let read = (/** @type {number} */ value) => value;
  if (axis.log) {
    [low, high] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    if (high === low) high += 1;
    const every = Math.max(1, Math.ceil((high - low) / most));
    ticks = multiples(low, high, every).map((value) => [10 ** value, tickText(10 ** value)]);
    read = Math.log10;
  } else if (axis.kind === "time") {
    if (high === low) [low, high] = [low - 1, high + 1];
    ticks = timeTicks(low, high, most, axis.unit ?? "");
  } else {
    const fromZero = chart.value_axis === name && (chart.mark === "bar" || chart.mark === "area");
    if (!axis.unit && (fromZero || (low > 0 && low < high * 0.4))) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
    if (high === low) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const step = linearSteps(low, high, most);
    if (!axis.unit) [low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
    ticks = multiples(low, high, step).map((value) => [value, tickText(value)]);
  }
  const at = (/** @type {number} */ value) => from + ((read(value) - low) / (high - low)) * (to - from);
  return { at, step: 0, ticks, low: axis.log ? 10 ** low : low };
}

/** @param {ChartData} chart @param {boolean} dark */
function colorsOf(chart, dark) {
  const look = dark ? "dark" : "light";
  const axis = chart.color;
  if (!axis) return () => COLORS[look][0];
  if (axis.kind === "band") {
    const last = (axis.labels?.length ?? 0) - 1;
    return (/** @type {number | null} */ value) =>
      (axis.other && value === last ? OTHER : COLORS[look][(value ?? 0) % COLORS[look].length]);
  }
  const values = chart.marks.map((mark) => mark[4]).filter((value) => value !== null);
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const [first, last] = RAMP[look];
  const read = (/** @type {number} */ value) => (axis.log ? Math.log10(value) : value);
  return (/** @type {number | null} */ value) => {
    if (value === null) return OTHER;
    const share = high > low ? (read(value) - read(low)) / (read(high) - read(low)) : 1;
    return `rgb(${first.map((each, n) => Math.round(each + share * (last[n] - each))).join(",")})`;
  };
}

/** The names of the colors, above the drawing.
 * @param {ChartData} chart @param {number} width @param {(value: number | null) => string} colorOf @param {string[]} ink */
function legend(chart, width, colorOf, ink) {
  const axis = chart.color;
  const parts = /** @type {Node[]} */ ([]);
  if (!axis) return { parts, height: 0 };
  const write = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ text, /** @type {number} */ color) =>
    parts.push(shape("text", { x, y: y + 9, fill: ink[color] }, text));
  let [x, y] = [0, 4];
  write(x, y, cut(axis.title), 1);
  x += cut(axis.title).length * LETTER + 14;
  if (axis.kind !== "band") {
    const values = chart.marks.map((mark) => mark[4] ?? 0);
    const [low, high] = [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
    const name = (/** @type {number} */ value) => (axis.kind === "time" ? new Date(value).toISOString().slice(0, 10) : tickText(value));
    if (low <= high) {
      write(x, y, name(low), 1);
      x += name(low).length * LETTER + 6;
      for (let n = 0; n < 10; n += 1) {
        const value = axis.log ? low * (high / low) ** (n / 9) : low + (n / 9) * (high - low);
        parts.push(shape("rect", { x: x + n * 9, y, width: 9, height: 10, fill: colorOf(value) }));
      }
      write(x + 96, y, name(high), 1);
    }
    return { parts, height: LINE + 8 };
  }
  for (const [index, label] of (axis.labels ?? []).entries()) {
    const text = cut(label);
    const size = 16 + text.length * LETTER + 12;
    if (x + size > width && x > 0) [x, y] = [0, y + LINE];
    parts.push(shape("rect", { x, y, width: 10, height: 10, rx: 2, fill: colorOf(index) }));
    parts.push(shape("text", { x: x + 15, y: y + 9, fill: ink[0], ...(axis.null === index ? { "font-style": "italic" } : {}) }, text));
    x += size;
  }
  return { parts, height: y + LINE + 4 };
}

/** The drawing, and where each mark is in it. @param {ChartData} chart @param {Look} look
 * @returns {{ svg: SVGSVGElement, spots: Spot[] }} */
export function drawChart(chart, { width, dark }) {
  const ink = INK[dark ? "dark" : "light"];
  const colorOf = colorsOf(chart, dark);
  const yLabels = chart.y.kind === "band" ? chart.y.labels ?? [] : null;
  const xLabels = chart.x.kind === "band" ? chart.x.labels ?? [] : null;
  const longest = (/** @type {string[]} */ labels) => labels.reduce((most, each) => Math.max(most, Math.min(each.length, MOST_LABEL)), 1);
  const left = yLabels ? Math.min(longest(yLabels) * LETTER + 14, width * 0.4) : 58;
  const whole = Math.max(width, left + 12 + (xLabels?.length ?? 0) * 3);
  const inner = whole - left - 12;
  const upright = xLabels !== null && longest(xLabels) * LETTER + 6 > inner / Math.max(xLabels.length, 1);
  const foot = 24 + (upright ? Math.min(longest(xLabels ?? []), 16) * LETTER : 14);
  const keys = legend(chart, width, colorOf, ink);
  const head = keys.height + 18;
  const rowHeight = (yLabels?.length ?? 0) <= 60 ? 20 : (yLabels?.length ?? 0) <= 400 ? 13 : 4;
  const body = yLabels ? Math.max(80, yLabels.length * rowHeight) : Math.min(320, Math.max(200, width * 0.55));
  const x = scaleOf(chart, "x", left, left + inner);
  const y = scaleOf(chart, "y", head + body, head);
  const height = head + body + foot;
  const frame = shape("g", { "shape-rendering": "crispEdges" });
  const words = shape("g", {});
  const marks = shape("g", {});
  /** @param {number} at @param {string} label @param {boolean} isNull */
  const yTick = (at, label, isNull) => words.append(shape("text", { x: left - 6, y: short(at + 4), "text-anchor": "end", fill: ink[1],
    ...(isNull ? { "font-style": "italic" } : {}) }, cut(label, Math.floor((left - 10) / LETTER))));
  let last = -Infinity;
  for (const [value, label] of y.ticks) {
    const at = y.at(value);
    if (!yLabels) frame.append(shape("line", { x1: left, x2: left + inner, y1: short(at), y2: short(at), stroke: ink[2] }));
    if (yLabels && Math.abs(at - last) < 12) continue;
    last = at;
    yTick(at, label, Boolean(yLabels) && chart.y.null === value);
  }
  last = -Infinity;
  for (const [value, label] of x.ticks) {
    const at = x.at(value);
    if (!xLabels) frame.append(shape("line", { x1: short(at), x2: short(at), y1: head, y2: head + body, stroke: ink[2] }));
    const text = cut(label, upright ? 16 : MOST_LABEL);
    const half = upright ? 6 : (text.length * LETTER) / 2 + 3;
    if (at - half < last || (!upright && at + half > whole + 6)) continue;
    last = at + half;
    const italic = /** @type {Record<string, string>} */ (xLabels && chart.x.null === value ? { "font-style": "italic" } : {});
    words.append(upright
      ? shape("text", { transform: `translate(${short(at + 4)} ${head + body + 6}) rotate(-90)`, "text-anchor": "end", fill: ink[1], ...italic }, text)
      : shape("text", { x: short(at), y: head + body + 15, "text-anchor": "middle", fill: ink[1], ...italic }, text));
  }
  words.append(shape("text", { x: 0, y: keys.height + 9, fill: ink[1], "font-weight": 600 }, cut(chart.y.title, 60)),
    shape("text", { x: left + inner, y: height - 4, "text-anchor": "end", fill: ink[1], "font-weight": 600 }, cut(chart.x.title, 60)));
  const spots = drawMarks(chart, x, y, marks, colorOf);
  const svg = /** @type {SVGSVGElement} */ (shape("svg", {
    width: whole, height: Math.ceil(height), viewBox: `0 0 ${whole} ${Math.ceil(height)}`, "font-family": "system-ui, sans-serif", "font-size": 11,
    "aria-hidden": "true", focusable: "false",
  }, frame, marks, words, ...keys.parts));
  return { svg, spots };
}

/** @param {ChartAxis} axis @param {Scale} scale
 * @param {number | null} begin @param {number | null} end @param {number} [least] width of what has no end */
function span(axis, scale, begin, end, least = 4) {
  if (axis.kind === "band") {
    const size = Math.max(scale.step * (scale.step > 6 ? 0.84 : 1), 0.5);
    return [scale.at(begin ?? 0) - size / 2, size];
  }
  const from = scale.at(begin ?? 0);
  if (end === null) return [from - least / 2, least];
  const to = scale.at(end);
  const size = Math.abs(to - from);
  return [Math.min(from, to), Math.max(size - (size > 4 ? 1 : 0), 0.5)];
}

/** @param {ChartData} chart @param {Scale} x @param {Scale} y @param {Element} into
 * @param {(value: number | null) => string} colorOf @returns {Spot[]} */
function drawMarks(chart, x, y, into, colorOf) {
  const upward = chart.value_axis !== "x";
  const overlaid = Boolean(chart.color) && !chart.stack;
  /** @type {Map<number | null, { at: number, top: number | null, base: number }[]>} */
  const paths = new Map();
  const along = upward ? chart.x : chart.y;
  const scale = upward ? x : y;
  const values = upward ? y : x;
  /** @type {Record<string, string[]>} */
  const dots = {};
  const spots = chart.marks.map((mark) => {
    const [x0, x1, y0, y1, color] = mark;
    const fill = colorOf(color);
    if (chart.mark === "rect") {
      const [[left, w], [top, h]] = [span(chart.x, x, x0, x1), span(chart.y, y, y0, y1)];
      into.append(shape("rect", { x: short(left), y: short(top), width: short(w), height: short(h), fill }));
      return { x: left + w / 2, y: top + h / 2, w, h };
    }
    const [begin, end] = upward ? [y0, y1] : [x0, x1];
    const [from, to] = upward ? [x0, x1] : [y0, y1];
    if (chart.mark === "bar") {
      const [place, size] = span(along, scale, from, to);
      const zero = end !== null ? begin ?? 0 : values.low > 0 ? values.low : 0;
      const [a, b] = [values.at(zero), values.at((end !== null ? end : begin) ?? 0)];
      const [low, length] = [Math.min(a, b), Math.max(Math.abs(a - b), 0.5)];
      const box = upward ? { x: place, y: low, w: size, h: length } : { x: low, y: place, w: length, h: size };
      into.append(shape("rect", { x: short(box.x), y: short(box.y), width: short(box.w), height: short(box.h), fill, ...(overlaid ? { "fill-opacity": 0.6 } : {}) }));
      return { x: box.x + box.w / 2, y: box.y + box.h / 2, w: box.w, h: box.h };
    }
    const middle = (/** @type {ChartAxis} */ axis, /** @type {Scale} */ on, /** @type {number | null} */ a, /** @type {number | null} */ b) =>
      (axis.kind !== "band" && axis.unit && b !== null && chart.mark === "point" ? on.at(((a ?? 0) + b) / 2) : on.at(a ?? 0));
    if (chart.mark === "point") {
      const [cx, cy] = [middle(chart.x, x, x0, x1), middle(chart.y, y, y0, y1)];
      (dots[fill] ??= []).push(`M${short(cx)} ${short(cy)}h0`);
      return { x: cx, y: cy, w: 6, h: 6 };
    }
    const top = end !== null && chart.stack ? end : begin;
    const base = chart.stack ? begin ?? 0 : values.low > 0 ? values.low : 0;
    const point = { at: scale.at(from ?? 0), top: top === null ? null : values.at(top), base: values.at(base) };
    if (!paths.has(color)) paths.set(color, []);
    paths.get(color)?.push(point);
    const depth = point.top ?? values.at(base);
    return upward ? { x: point.at, y: depth, w: 6, h: 6 } : { x: depth, y: point.at, w: 6, h: 6 };
  });
  for (const [stroke, d] of Object.entries(dots)) while (d.length) into.append(shape("path", { d: d.splice(0, 50).join(""), fill: "none", stroke, "stroke-width": 6, "stroke-opacity": 0.75, "stroke-linecap": "round" }));
  for (const [color, points] of paths) drawPath(chart, points, color, colorOf(color), upward, into);
  return spots;
}

/** A line or an area with gaps; a point alone is a dot.
 * @param {ChartData} chart @param {{ at: number, top: number | null, base: number }[]} points @param {number | null} color
 * @param {string} fill @param {boolean} upward @param {Element} into */
function drawPath(chart, points, color, fill, upward, into) {
  points.sort((a, b) => a.at - b.at);
  const spot = (/** @type {number} */ at, /** @type {number} */ depth) => (upward ? `${short(at)} ${short(depth)}` : `${short(depth)} ${short(at)}`);
  let run = /** @type {typeof points} */ ([]);
  const end = () => {
    const there = run.map(({ at, top }) => spot(at, top ?? 0));
    const dash = /** @type {Record<string, string>} */ (chart.color?.kind === "band" && (color ?? 0) >= 6 ? { "stroke-dasharray": "5 3" } : {});
    if (run.length === 1) {
      const [cx, cy] = there[0].split(" ");
      into.append(shape("circle", { cx, cy, r: 2.5, fill }));
    } else if (run.length && chart.mark === "area") {
      const back = [...run].reverse().map(({ at, base }) => spot(at, base));
      into.append(shape("path", { d: `M${[...there, ...back].join("L")}Z`, fill, "fill-opacity": chart.color && !chart.stack ? 0.5 : 0.85 }));
    } else if (run.length) {
      into.append(shape("path", { d: `M${there.join("L")}`, fill: "none", stroke: fill, "stroke-width": 2, "stroke-linejoin": "round", ...dash }));
    }
    run = [];
  };
  for (const point of points) {
    if (point.top === null) end();
    else run.push(point);
  }
  end();
}

/** @param {string | null} value */
function csvCell(value) {
  if (value === null) return "";
  // What a spreadsheet would take for a formula, as in all other exports.
  const shown = /^[=+\-@\t\r\n＝＋－＠]/.test(value) && !/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) ? `'${value}` : value;
  return /^$|[",;\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}

/** All that a chart shows, exactly. NULL is an empty cell, an empty text two quotes. @param {ChartData} chart */
export const chartCsv = (chart) => [chart.columns, ...chart.rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";

/** The file of a drawing, on white. @param {ChartData} chart @param {number} width */
function svgFile(chart, width) {
  const { svg } = drawChart(chart, { width, dark: false });
  svg.removeAttribute("aria-hidden");
  svg.setAttribute("role", "img");
  svg.prepend(shape("title", {}, `${visible(chart.y.title)}, ${visible(chart.x.title)}`), shape("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
  return { text: new XMLSerializer().serializeToString(svg), width: Number(svg.getAttribute("width")), height: Number(svg.getAttribute("height")) };
}

/** @param {ChartData} chart @param {number} width @returns {Promise<Blob>} */
async function pngFile(chart, width) {
  const file = svgFile(chart, width);
  const address = URL.createObjectURL(new Blob([file.text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const scale = Math.min(2, 8192 / Math.max(file.width, file.height));
    const canvas = element("canvas");
    [canvas.width, canvas.height] = [Math.round(file.width * scale), Math.round(file.height * scale)];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const made = await new Promise((/** @type {(blob: Blob | null) => void} */ resolve) => canvas.toBlob(resolve, "image/png"));
    return /** @type {Blob} */ (made);
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** @param {Blob} blob @param {string} name */
function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** What a mark says. @param {ChartData} chart @param {number} index */
const markText = (chart, index) => chart.columns.map((name, at) => `${visible(name)}: ${visible(chart.rows[index][at] ?? "NULL")}`).join(", ");

/** Whether texts are light here, and so the ground dark. @param {Element} node */
function isDark(node) {
  const [red, green, blue] = (getComputedStyle(node).color.match(/[\d.]+/g) ?? ["0", "0", "0"]).map(Number);
  return red * 0.3 + green * 0.6 + blue * 0.1 > 127;
}

/** A chart with all that belongs to it. Call `stop` when it goes.
 * @param {ChartData} chart @param {FigureOptions} options */
export function chartFigure(chart, { label, name, say = () => {}, saves = true }) {
  const [readout, drawing] = [element("p", { class: "chart-readout" }), element("div", { class: "chart-drawing" })];
  const most = chart.marks.length - 1;
  const hint = most < 0 ? "There is nothing to draw." : `${most + 1} marks of ${chart.row_count} rows. The arrow keys choose one.`;
  const box = element("div", {
    class: "chart-box", role: "slider", tabindex: "0", "aria-label": `${label}: choose a mark`, "aria-valuemin": "0",
    "aria-valuemax": String(Math.max(most, 0)), "aria-valuenow": "0", "aria-valuetext": hint,
  }, drawing);
  let chosen = -1;
  let drawn = { svg: /** @type {SVGSVGElement | null} */ (null), spots: /** @type {Spot[]} */ ([]), width: 0, dark: false };
  const ring = shape("rect", { fill: "none", "stroke-width": 2, rx: 2 });
  /** @param {number} index */
  const choose = (index) => {
    chosen = Math.min(index, most);
    readout.textContent = chosen < 0 ? hint : markText(chart, chosen);
    ring.remove();
    if (chosen < 0 || !drawn.svg) return;
    box.setAttribute("aria-valuenow", String(chosen));
    box.setAttribute("aria-valuetext", markText(chart, chosen));
    const { x, y, w, h } = drawn.spots[chosen];
    const size = [Math.max(w, 8) + 4, Math.max(h, 8) + 4];
    for (const [key, value] of Object.entries({ x: x - size[0] / 2, y: y - size[1] / 2, width: size[0], height: size[1] })) ring.setAttribute(key, short(value));
    ring.setAttribute("stroke", INK[drawn.dark ? "dark" : "light"][0]);
    drawn.svg.append(ring);
  };
  const draw = () => {
    const [width, dark] = [Math.floor(box.clientWidth), isDark(box)];
    if (width < 60 || (width === drawn.width && dark === drawn.dark)) return;
    drawn = { ...drawChart(chart, { width, dark }), width, dark };
    drawing.replaceChildren(/** @type {SVGSVGElement} */ (drawn.svg));
    choose(chosen);
  };
  box.addEventListener("keydown", (event) => {
    const moves = /** @type {Record<string, number>} */ ({
      ArrowLeft: chosen - 1, ArrowRight: chosen + 1, ArrowDown: chosen - 1, ArrowUp: chosen + 1, PageDown: chosen - 10, PageUp: chosen + 10, Home: 0, End: most,
    });
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves || (event.key === "Escape" && chosen >= 0))) return;
    event.preventDefault();
    event.stopPropagation();
    choose(event.key === "Escape" ? -1 : Math.max(moves[event.key], Math.min(0, most)));
    const spot = drawn.spots[chosen];
    if (spot) box.scrollTo({ left: spot.x - box.clientWidth / 2, top: spot.y - box.clientHeight / 2 });
  });
  box.addEventListener("pointermove", (event) => {
    const { left, top } = drawing.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const away = (/** @type {Spot} */ { x: a, y: b, w, h }) => Math.max(Math.abs(a - x) - w / 2, 0) + Math.max(Math.abs(b - y) - h / 2, 0);
    let [nearest, least] = [-1, 40];
    drawn.spots.forEach((spot, index) => {
      const distance = away(spot);
      if (distance < least) [nearest, least] = [index, distance];
    });
    if (nearest !== chosen) choose(nearest);
  });
  box.addEventListener("pointerleave", () => choose(-1));
  const size = new ResizeObserver(draw);
  size.observe(box);
  const theme = new MutationObserver(draw);
  theme.observe(document.documentElement, { attributes: true });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", draw);
  const width = () => Math.max(drawn.width, 480);
  const files = /** @type {Record<string, () => Blob | Promise<Blob>>} */ ({
    PNG: () => pngFile(chart, width()), SVG: () => new Blob([svgFile(chart, width()).text], { type: "image/svg+xml" }),
    CSV: () => new Blob([chartCsv(chart)], { type: "text/csv" }),
  });
  const buttons = !saves || most < 0 ? [] : Object.entries(files).map(([kind, make]) => {
    const button = element("button", { class: "small", type: "button", "aria-label": `Save the chart as ${kind}` }, kind);
    button.addEventListener("click", async () => {
      try {
        saveFile(await make(), `${name}.${kind.toLowerCase()}`);
        say(`${name}.${kind.toLowerCase()} is saved.`);
      } catch (error) {
        say(`The chart was not saved: ${error}`);
      }
    });
    return button;
  });
  choose(-1);
  const notes = chart.notes?.length ? [element("ul", { class: "chart-notes" }, ...chart.notes.map((each) => element("li", {}, visible(each))))] : [];
  const node = element("figure", { class: "chart" }, ...notes, box, readout,
    element("div", { class: "chart-foot" }, chartTable(chart, label), ...(buttons.length ? [element("div", { class: "export" }, element("span", {}, "Save as"), ...buttons)] : [])));
  const stop = () => {
    size.disconnect();
    theme.disconnect();
    scheme.removeEventListener("change", draw);
  };
  return { node, stop, focus: () => box.focus() };
}

const TABLE_ROWS = 200;

/** @param {ChartData} chart @param {string} label */
function chartTable(chart, label) {
  const body = element("tbody");
  const more = element("button", { class: "small", type: "button" }, "Show more");
  let shown = 0;
  const add = () => {
    for (const row of chart.rows.slice(shown, shown + TABLE_ROWS)) {
      body.append(element("tr", {}, ...row.map((value) => (value === null ? element("td", {}, element("span", { class: "null" }, "NULL")) : element("td", {}, visible(value))))));
    }
    shown = Math.min(shown + TABLE_ROWS, chart.rows.length);
    more.hidden = shown >= chart.rows.length;
  };
  more.addEventListener("click", add);
  const details = element("details", { class: "chart-table" }, element("summary", {}, "As a table"),
    element("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": `${label} as a table` },
      element("table", { class: "records" }, element("thead", {}, element("tr", {}, ...chart.columns.map((each) => element("th", { scope: "col" }, visible(each))))), body), more));
  details.addEventListener("toggle", () => details.open && !shown && add());
  return details;
}
