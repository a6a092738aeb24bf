/**
 * A plot of lines over time, drawn as SVG. The arrow keys and the pointer choose a point, whose
 * values are written beside the title and read out; a table has all of them.
 */

import { h } from "./dom.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { when } from "./text.js";

/** @typedef {(number | null)[]} Values */
/** @typedef {{ name: string, values: Values }} PlotLine */
/** @typedef {{ since: number, step: number, lines: PlotLine[] }} PlotData */
/** @typedef {{ title: string, name: string, read: () => PlotData, format: (value: number) => string,
 *   logarithmic?: boolean }} PlotOptions */

const SPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 132;
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 8, 8, 22];
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720];

/** @param {string} tag @param {Record<string, string | number>} attributes @param {...(Node | string)} children */
function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** @param {PlotOptions} options */
export function plot({ title, name, read, format, logarithmic = false }) {
  const data = computed(read);
  const width = signal(0);
  const chosen = signal(/** @type {number | null} */ (null));
  const count = () => data.value.lines[0]?.values.length ?? 0;
  const at = () => Math.min(chosen.value ?? count() - 1, count() - 1);
  /** @param {number} index */
  const said = (index) => {
    const { since, step, lines } = data.value;
    const values = lines.map(({ name: line, values: all }) => {
      const value = all[index];
      return `${line} ${value === null || value === undefined ? "none" : format(value)}`;
    });
    return `${when(since + index * step)}: ${values.join(", ")}`;
  };
  const drawing = svg("svg", { "aria-hidden": "true", focusable: "false", height: HEIGHT });
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const last = count() - 1;
    const moves = /** @type {Record<string, number>} */ ({
      ArrowLeft: at() - 1, ArrowRight: at() + 1, ArrowDown: at() - 1, ArrowUp: at() + 1,
      PageDown: at() - 10, PageUp: at() + 10, Home: 0, End: last,
    });
    if (event.key === "Escape") chosen.value = null;
    else if (event.key in moves) chosen.value = Math.min(Math.max(moves[event.key], 0), last);
    else return;
    event.preventDefault();
  };
  /** @param {PointerEvent} event */
  const point = (event) => {
    const share = (event.clientX - box.getBoundingClientRect().left - LEFT) / (width.peek() - LEFT - RIGHT);
    chosen.value = Math.min(Math.max(Math.round(share * (count() - 1)), 0), count() - 1);
  };
  const box = h("div", {
    class: "plot-box", role: "slider", tabindex: "0", "aria-label": `${title}: choose a time`,
    "aria-valuemin": "0", "aria-valuemax": () => String(Math.max(count() - 1, 0)),
    "aria-valuenow": () => String(Math.max(at(), 0)), "aria-valuetext": () => said(at()),
    onkeydown: press, onpointermove: point, onpointerdown: point,
    onpointerleave: () => (chosen.value = null), onblur: () => (chosen.value = null),
  }, drawing);
  const size = new ResizeObserver(() => (width.value = box.clientWidth));
  size.observe(box);
  onEnd(() => size.disconnect());
  effect(() => drawing.replaceChildren(...draw(data.value, width.value, chosen.value, format, logarithmic)));
  return h("figure", { class: `plot plot-${name}` },
    h("figcaption", {},
      h("h3", {}, title),
      h("span", { class: "legend" }, () => data.value.lines.map(({ name: line }, index) =>
        h("span", { class: `key line-${index}` }, line))),
      h("span", { class: "readout" }, () => said(at()))),
    box, table(title, data, format));
}

/** @param {string} title @param {import("./signals.js").Signal<PlotData>} data @param {(value: number) => string} format */
function table(title, data, format) {
  const open = signal(false);
  const rows = () => {
    if (!open.value) return null;
    const { since, step, lines } = data.value;
    const order = [...(lines[0]?.values.keys() ?? [])].reverse();
    return h("table", { class: "records" },
      h("caption", { class: "sr" }, title),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From"),
        lines.map(({ name }) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, order.map((index) => h("tr", {},
        h("th", { scope: "row" }, when(since + index * step)),
        lines.map(({ values }) => h("td", {}, values[index] === null ? "–" : format(values[index] ?? 0)))))));
  };
  return h("details", { ontoggle: (/** @type {Event} */ event) => {
    open.value = /** @type {HTMLDetailsElement} */ (event.currentTarget).open;
  } }, h("summary", {}, "As a table", h("span", { class: "sr" }, `: ${title}`)),
  h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": `${title} as a table` }, rows));
}

/** @param {PlotData} data @param {number} width @param {number | null} chosen
 * @param {(value: number) => string} format @param {boolean} logarithmic */
function draw(data, width, chosen, format, logarithmic) {
  const length = data.lines[0]?.values.length ?? 0;
  if (!length || width < LEFT + RIGHT + 20) return [];
  const top = Math.max(0, ...data.lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const ticks = logarithmic ? decades(top) : steps(top);
  const x = (/** @type {number} */ index) => LEFT + (index * (width - LEFT - RIGHT)) / Math.max(length - 1, 1);
  const y = (/** @type {number} */ value) => {
    const [low, high] = logarithmic ? [Math.log(ticks[0]), Math.log(ticks[ticks.length - 1])] : [0, ticks[ticks.length - 1]];
    const share = ((logarithmic ? Math.log(Math.max(value, ticks[0])) : value) - low) / (high - low || 1);
    return HEIGHT - BOTTOM - Math.min(share, 1) * (HEIGHT - TOP - BOTTOM);
  };
  const parts = ticks.map((value) => svg("g", { class: "tick" },
    svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, format(value))));
  for (const index of times(data, length, width)) {
    parts.push(svg("text", { class: "time", x: x(index), y: HEIGHT - 5, "text-anchor": "middle" },
      when(data.since + index * data.step).split(", ").pop() ?? ""));
  }
  data.lines.forEach(({ values }, place) => {
    parts.push(svg("path", { class: `line line-${place}`, d: path(values, x, y) }));
  });
  if (chosen !== null && chosen < length) {
    parts.push(svg("line", { class: "cursor", x1: x(chosen), x2: x(chosen), y1: TOP, y2: HEIGHT - BOTTOM }));
    data.lines.forEach(({ values }, place) => {
      const value = values[chosen];
      if (value !== null && value !== undefined) {
        parts.push(svg("circle", { class: `point line-${place}`, cx: x(chosen), cy: y(value), r: 3.5 }));
      }
    });
  }
  return parts;
}

/** A line with gaps; a point alone is a short dash.
 * @param {Values} values @param {(index: number) => number} x @param {(value: number) => number} y */
function path(values, x, y) {
  let pen = "M";
  return values.map((value, index) => {
    if (value === null) return ((pen = "M"), "");
    const alone = pen === "M" && (values[index + 1] ?? null) === null;
    const piece = `${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}${alone ? "h1.5" : ""}`;
    pen = "L";
    return piece;
  }).join("");
}

/** From 0 to at least the value, in steps of 1, 2 or 5. @param {number} top */
function steps(top) {
  const least = Math.max(top, 1) / 3;
  const unit = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= least) ?? unit);
  const found = [];
  for (let value = 0; value < top + step; value += step) found.push(value);
  return found.length > 1 ? found : [0, step];
}

/** Powers of ten around the values, from a millisecond on. @param {number} top */
function decades(top) {
  const last = Math.max(1, Math.ceil(Math.log10(Math.max(top, 1))));
  const first = Math.max(-1, last - 4);
  return [...Array(last - first + 1).keys()].map((place) => 10 ** (first + place));
}

/** The points whose times are written: whole minutes or hours, as many as there is room for.
 * @param {PlotData} data @param {number} length @param {number} width */
function times(data, length, width) {
  const room = Math.max(2, Math.floor((width - LEFT - RIGHT) / 64));
  const minutes = (length * data.step) / 60;
  const every = MINUTES.find((each) => minutes / each <= room) ?? 720;
  return [...Array(length).keys()].filter((index) => {
    const at = new Date((data.since + index * data.step) * 1000);
    return (at.getHours() * 60 + at.getMinutes()) % every === 0 && index > 0 && index < length - 1;
  });
}
