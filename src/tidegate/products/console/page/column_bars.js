/** What the columns of a table hold, read on demand: how many values are NULL, and bars of the others. */

import { errorText, post } from "./api.js";
import { h } from "./dom.js";
import { signal } from "./signals.js";
import { say } from "./state.js";
import { isolated, number, prose, visible } from "./text.js";

/** @typedef {{ label: string, count: number }} Bar */
/** @typedef {{ name: string, rows: number, nulls: number, distinct: number | null, bars: Bar[], named: boolean }} ColumnFigures */
/** @typedef {{ rows: number, whole: boolean, filtered: boolean, columns: ColumnFigures[] }} TableFigures */

const SPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 26;

/** @param {string} tag @param {Record<string, string | number>} attributes */
function svg(tag, attributes) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}

/** @param {number} part @param {number} whole */
const share = (part, whole) => {
  const percent = whole ? (100 * part) / whole : 0;
  return percent > 0 && percent < 1 ? "under 1 %" : percent > 99 && percent < 100 ? "over 99 %" : `${Math.round(percent)} %`;
};

/** A line of a share of the rows. @param {number} part @param {number} whole */
function shareBar(part, whole) {
  const drawing = svg("svg", { class: "share-bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  drawing.append(svg("rect", { class: "ground", width: 100, height: 6 }), svg("rect", { class: "filled", width: whole ? (100 * part) / whole : 0, height: 6 }));
  return drawing;
}

/** @param {ColumnFigures} column */
function valueBars({ bars, named, rows }) {
  if (!bars.length) return null;
  if (named) {
    return h("ul", { class: "value-bars" }, bars.map(({ label, count }) => h("li", {},
      isolated(label), shareBar(count, rows), h("span", { class: "note" }, share(count, rows)))));
  }
  const most = Math.max(...bars.map(({ count }) => count));
  const drawing = svg("svg", {
    class: "column-bars", viewBox: `0 0 ${bars.length * 8} ${HEIGHT}`, role: "img",
    "aria-label": bars.filter(({ count }) => count).map(({ label, count }) => `${label}: ${number(count)}`).join(", "),
  });
  bars.forEach(({ label, count }, at) => {
    const height = count ? Math.max(1, (count / most) * HEIGHT) : 0;
    const bar = svg("rect", { x: at * 8, y: HEIGHT - height, width: 7, height });
    const title = svg("title", {});
    title.textContent = `${label}: ${number(count)}`;
    bar.append(title);
    drawing.append(bar);
  });
  return h("div", {}, drawing, h("div", { class: "note bars-ends" }, h("span", {}, visible(bars[0].label)), h("span", {}, visible(bars.at(-1)?.label ?? ""))));
}

/** The figures of one table, and the button that reads them.
 * @param {import("./data_contract.js").Place} place @param {string} table */
export function columnFigures(place, table) {
  const found = signal(/** @type {TableFigures | null} */ (null));
  const problem = signal("");
  const isBusy = signal(false);
  const read = async () => {
    isBusy.value = true;
    problem.value = "";
    try {
      found.value = await post("data/columns", { ...place, table });
      say("The values of the columns are shown.");
    } catch (error) {
      problem.value = errorText(error);
    }
    isBusy.value = false;
  };
  /** @param {string} name */
  const of = (name) => found.value?.columns.find((each) => each.name === name);
  return {
    bar: h("div", { class: "figures-bar" },
      h("button", { class: "small", disabled: () => isBusy.value, onclick: () => void read() },
        () => (isBusy.value ? "Reading …" : found.value ? "Read the values again" : "Show what the columns hold")),
      () => (found.value ? h("span", { class: "note" }, !found.value.whole ? `Of the first ${number(found.value.rows)} rows by key; there are more.`
        : `Of all ${number(found.value.rows)} rows${found.value.filtered ? " that a row filter lets you see" : ""}.`) : null),
      () => (problem.value ? h("p", { class: "error", role: "alert" }, prose(problem.value)) : null)),
    /** @param {string} name of a column */
    nulls: (name) => () => {
      const column = of(name);
      return column ? h("span", { class: "null-share" }, shareBar(column.nulls, column.rows), h("span", {}, share(column.nulls, column.rows))) : null;
    },
    /** @param {string} name of a column */
    values: (name) => () => {
      const column = of(name);
      return column ? [valueBars(column), column.distinct === null ? null : h("div", { class: "note" }, `${number(column.distinct)} different`)] : null;
    },
  };
}
