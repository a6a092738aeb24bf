/** What a chart shows, chosen in a form or written as text. */

import { h } from "./dom.js";
import { signal } from "./signals.js";
import { prose, visible } from "./text.js";

/** @typedef {import("./chart_contract.js").ChannelName} ChannelName */
/** @typedef {import("./chart_contract.js").ChartChannel} ChartChannel */
/** @typedef {import("./chart_contract.js").ChartSpec} ChartSpec */
/** @typedef {import("./data_contract.js").DataColumn} DataColumn */
/** A value of a select, and its words. @typedef {[string, string]} Choice */

/** @type {Choice[]} */
const MARKS = [["bar", "Bars"], ["line", "Lines"], ["area", "Areas"], ["point", "Points"], ["rect", "Heat map"]];
/** @type {Choice[]} */
const GATHERED = [["sum", "sum"], ["mean", "mean"], ["median", "median"], ["min", "least"], ["max", "greatest"]];
/** @type {Choice[]} */
const UNITS = [["year", "by year"], ["yearquarter", "by quarter"], ["yearmonth", "by month"], ["yearmonthdate", "by day"],
  ["yearmonthdatehours", "by hour"], ["yearmonthdatehoursminutes", "by minute"], ["month", "months"], ["day", "days of the week"],
  ["hours", "hours of the day"]];
/** @type {Choice[]} */
const COUNTED = [["distinct", "how many different"]];
const COUNT = "\0count";
const NONE = "\0none";

/** How a column may be shown. @param {string} kind @returns {Choice[]} */
function waysOf(kind) {
  const [number, time, category] = /** @type {Choice[]} */ ([["quantitative", "as numbers"], ["temporal", "as times"], ["nominal", "as categories"]]);
  if (kind === "number") return [number, ["bin", "in bins"], category, ...GATHERED, ...COUNTED];
  if (kind === "time") return [time, ...UNITS, category, ...COUNTED];
  if (kind === "other") return [number, ["bin", "in bins"], time, ...UNITS, category, ...GATHERED, ...COUNTED];
  return [category, time, ...UNITS, ...COUNTED];
}

/** @param {ChartChannel} channel */
const wayOf = (channel) => channel.aggregate ?? (channel.bin ? "bin" : channel.timeUnit?.replace(/^utc/, "") ?? channel.type?.replace("ordinal", "nominal") ?? "nominal");

/** @param {string} field @param {string} way @returns {ChartChannel} */
function channelOf(field, way) {
  if (way === "bin") return { field, bin: true, type: "quantitative" };
  if (UNITS.some(([unit]) => unit === way)) return { field, timeUnit: way, type: "temporal" };
  if (["quantitative", "temporal", "nominal"].includes(way)) return { field, type: /** @type {import("./chart_contract.js").FieldType} */ (way) };
  return { field, aggregate: way, type: "quantitative" };
}

/** @param {ChartChannel | undefined} channel */
const isDiscrete = (channel) => channel?.type === "nominal" || channel?.type === "ordinal";
/** @param {ChartChannel} channel */
const isMeasure = (channel) => !isDiscrete(channel) && channel.type !== "temporal" && !channel.bin && !channel.timeUnit;

/** The axis of the length of bars and the height of areas. @param {ChartSpec} spec */
const valueAxis = ({ encoding: { x, y } }) => (isMeasure(x) && (!isMeasure(y) || (x.aggregate && !y.aggregate)) ? "x" : "y");

/** @typedef {(spec: ChartSpec, isText: boolean) => void} Change what is written as text may be anything */

/** @param {() => ChartSpec | null} spec @param {() => readonly DataColumn[]} columns @param {Change} change */
export function chartForm(spec, columns, change) {
  /** @param {(copy: ChartSpec) => void} edit */
  const edit = (edit) => {
    const copy = structuredClone(spec());
    if (!copy) return;
    edit(copy);
    change(tidy(copy), false);
  };
  /** @param {string} label @param {Choice[]} choices @param {string} value @param {(value: string) => void} write */
  const select = (label, choices, value, write) => h("select", {
    "aria-label": label, onchange: (/** @type {Event} */ event) => write(/** @type {HTMLSelectElement} */ (event.target).value),
  }, (choices.some(([each]) => each === value) ? choices : [...choices, /** @type {Choice} */ ([value, value])])
    .map(([each, text]) => h("option", { value: each, selected: each === value }, visible(text))));

  /** @param {ChannelName} name @param {string} label @param {ChartSpec} now */
  const channel = (name, label, now) => {
    const found = now.encoding[name];
    const fields = /** @type {Choice[]} */ ([...(name === "color" ? [[NONE, "nothing"]] : []), ...columns().map((each) => [each.name, each.name]), [COUNT, "the number of rows"]]);
    const field = !found ? NONE : found.aggregate === "count" ? COUNT : found.field ?? "";
    const kind = columns().find((each) => each.name === field)?.kind ?? "other";
    /** @param {string} value @param {string} [way] */
    const set = (value, way) => edit((copy) => {
      if (value === NONE) delete copy.encoding.color;
      else if (value === COUNT) copy.encoding[name] = { aggregate: "count", type: "quantitative" };
      else {
        const ways = waysOf(columns().find((each) => each.name === value)?.kind ?? "other");
        const before = found ? wayOf(found) : "";
        const wanted = way ?? (ways.some(([each]) => each === before) ? before : name === "color" ? "nominal" : ways[0][0]);
        copy.encoding[name] = channelOf(value, wanted);
      }
    });
    return h("fieldset", {}, h("legend", {}, label),
      select(`${label}: what`, fields, field, (value) => set(value)),
      found && field !== COUNT ? select(`${label}: how`, waysOf(kind), wayOf(found), (way) => set(field, way)) : null,
      found && isDiscrete(found) ? select(`${label}: order`, orders(name, now), JSON.stringify(found.sort === undefined ? "ascending" : found.sort),
        (value) => edit((copy) => void (/** @type {ChartChannel} */ (copy.encoding[name]).sort = JSON.parse(value)))) : null,
      found && isMeasure(found) ? h("label", { class: "check" }, h("input", {
        type: "checkbox", checked: found.scale?.type === "log", "aria-label": `${label}: logarithmic`,
        onchange: (/** @type {Event} */ event) => edit((copy) => {
          const one = /** @type {ChartChannel} */ (copy.encoding[name]);
          if (/** @type {HTMLInputElement} */ (event.target).checked) one.scale = { type: "log" };
          else delete one.scale;
        }) }), "logarithmic") : null);
  };
  const stacks = /** @type {Choice[]} */ ([["zero", "on each other"], ["normalize", "as shares"], ["null", "over each other"]]);
  /** @param {string} label */
  const focusOn = (label) => node?.querySelectorAll("select, input").forEach((each) =>
    each.getAttribute("aria-label") === label && /** @type {HTMLElement} */ (each).focus());
  let node = /** @type {HTMLElement | null} */ (null);
  node = h("div", { class: "chart-form", role: "group", "aria-label": "What the chart shows" },
    () => {
      const now = spec();
      if (!now) return null;
      const label = node?.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
      if (label) queueMicrotask(() => focusOn(label));  // the selects are new ones now
      const values = now.encoding[valueAxis(now)];
      const stack = values.stack === undefined || values.stack === true ? "zero" : values.stack === false || values.stack === null ? "null" : String(values.stack);
      return [
        select("Drawn as", MARKS, now.mark, (mark) => edit((copy) => void (copy.mark = mark))),
        channel("x", "Across", now), channel("y", "Up", now), channel("color", "Color", now),
        now.encoding.color && ["bar", "area"].includes(now.mark)
          ? select("Several in one place", stacks, stack, (value) => edit((copy) => void (copy.encoding[valueAxis(copy)].stack = value === "null" ? null : value))) : null,
      ];
    },
    textForm(spec, change));
  return node;
}

/** @param {ChannelName} name @param {ChartSpec} spec @returns {Choice[]} */
function orders(name, spec) {
  const others = /** @type {ChannelName[]} */ (["x", "y", "color"]).filter((each) => each !== name && spec.encoding[each] && isMeasure(/** @type {ChartChannel} */ (spec.encoding[each])));
  const found = /** @type {Choice[]} */ ([['"ascending"', "in order"], ['"descending"', "in reverse order"], ["null", "as they come"]]);
  for (const each of others) {
    const words = { x: "across", y: "up", color: "color" }[each];
    found.push([`"-${each}"`, `the most ${words} first`], [`"${each}"`, `the least ${words} first`]);
  }
  return found;
}

/** The specification without what no longer belongs to it. @param {ChartSpec} spec */
function tidy(spec) {
  const axis = valueAxis(spec);
  for (const name of /** @type {const} */ (["x", "y"])) {
    if (name !== axis || !["bar", "area"].includes(spec.mark)) delete spec.encoding[name].stack;
  }
  for (const name of /** @type {ChannelName[]} */ (["x", "y", "color"])) {
    const channel = spec.encoding[name];
    const sort = typeof channel?.sort === "string" ? channel.sort.replace("-", "") : "";
    if (!channel || !["x", "y", "color"].includes(sort)) continue;
    const other = spec.encoding[/** @type {ChannelName} */ (sort)];
    if (!other || sort === name || !isMeasure(other)) delete channel.sort;
  }
  return spec;
}

/** @param {() => ChartSpec | null} spec @param {Change} change */
function textForm(spec, change) {
  const problem = signal("");
  const area = h("textarea", { rows: "8", spellcheck: "false", "aria-label": "The chart as Vega-Lite", value: () => JSON.stringify(spec(), null, 2) });
  const apply = () => {
    problem.value = "";
    try {
      change(JSON.parse(area.value), true);
    } catch (error) {
      problem.value = `This is no JSON: ${error}`;
    }
  };
  return h("details", { class: "chart-text" }, h("summary", {}, "As text"), area,
    h("button", { class: "small", onclick: apply }, "Draw it"),
    () => (problem.value ? h("p", { class: "error", role: "alert" }, prose(problem.value)) : null));
}
