/** Rows before and after a change, in one table with what changes marked. */

import { h } from "./dom.js";
import { cell, counted, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./contract.js").Cell} Cell */
/** @typedef {import("./contract.js").DryRun} DryRun */
/** @typedef {import("./contract.js").Rows} Rows */

const FEW_COLUMNS = 8;
const LONG_CELL = 300;

/** @param {Cell | undefined} value @param {string} kind */
function content(value, kind) {
  const long = typeof value === "string" && value.length > LONG_CELL;
  const properties = long
    ? { class: `${kind} long`, tabindex: "0", role: "group", "aria-label": "a long value" }
    : { class: kind };
  const tag = kind === "old" ? "del" : kind === "new" ? "ins" : "span";
  return h(tag, properties, cell(value));
}

/** The places of the columns, those that change first where there are many.
 * @param {number} count @param {Rows} before @param {Rows} after @returns {number[]} */
export function columnOrder(count, before, after) {
  const places = [...Array(count).keys()];
  if (count <= FEW_COLUMNS) return places;
  const changes = (/** @type {number} */ place) =>
    before.some((row, index) => row && after[index] && row[place] !== after[index]?.[place]);
  const changed = places.filter((place) => place > 0 && changes(place));
  const rest = places.filter((place) => place > 0 && !changed.includes(place));
  return [0, ...changed, ...rest];
}

/** A scrolling region with a table in it. @param {string} label @param {Node} table */
export const tableBox = (label, table) =>
  h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": label }, table);

/** @param {string[]} columns @param {Rows} before @param {Rows} after @param {string} label
 * @param {string[]} masked the columns whose values this operator does not see */
export function changesTable(columns, before, after, label, masked) {
  const order = columnOrder(columns.length, before, after);
  const rows = before.map((old, index) => {
    const now = after[index];
    const kind = !old ? "added" : !now ? "removed" : "changed";
    const cells = order.map((place) => {
      if (masked.includes(columns[place])) return h("td", { class: "same" }, "***");
      const [was, is] = [old?.[place], now?.[place]];
      if (!old) return h("td", { class: "add" }, content(is, "new"));
      if (!now) return h("td", { class: "remove" }, content(was, "old"));
      if (was === is) return h("td", { class: "same" }, content(was, "kept"));
      return h("td", { class: "change" }, content(was, "old"), h("span", { class: "to" }, " → "),
        content(is, "new"));
    });
    return h("tr", { class: kind }, h("th", { scope: "row" }, kind), cells);
  });
  const head = order.map((place) => h("th", { scope: "col" }, isolated(columns[place])));
  return tableBox(label, h("table", { class: "changes" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "sr" }, "What happens")),
      head)),
    h("tbody", {}, rows)));
}

/** What a dry run found, as a sentence. @param {DryRun} run */
function dryRunSentence(run) {
  if (run.requests.length) {
    return `Would send ${counted(run.affected ?? run.requests.length, "request")}; none was sent.`;
  }
  if (run.affected === null) return "How many rows it would change is unknown.";
  if (run.what) {
    return `${run.what}: ${number(run.added)} would be added and ${number(run.removed)} removed; ` +
      "nothing was stored.";
  }
  const pairs = run.before.map((row, index) => (!row ? "add" : !run.after[index] ? "remove" : "change"));
  const kinds = new Set(pairs);
  const verb = kinds.size === 1
    ? { add: "added", remove: "deleted", change: "changed" }[/** @type {"add"} */ (pairs[0])]
    : "changed";
  return `${counted(run.affected, "row")} would be ${verb}; it was tried and rolled back.`;
}

/** @param {DryRun} run @param {boolean} isOver the question waits no more */
export function dryRunView(run, isOver) {
  const left = (run.affected ?? 0) - run.before.length;
  return [
    h("p", { class: run.affected === null ? "unknown" : "finding" },
      isOver ? "When it was asked: " : null, visible(dryRunSentence(run))),
    run.requests.length
      ? h("ol", { class: "requests" }, run.requests.map((text) => h("li", {}, isolated(text))))
      : null,
    run.before.length
      ? changesTable(run.columns, run.before, run.after, "Rows before and after", run.masked)
      : null,
    run.before.length && left > 0
      ? h("p", { class: "note" }, `and ${number(left)} more that are not shown here`) : null,
    run.reason ? h("p", { class: "note" }, prose(run.reason)) : null,
    run.withheld.length
      ? h("p", { class: "note" }, "Masked for the caller: ",
        run.withheld.map((name, index) => [index ? ", " : "", isolated(name)]), ".")
      : null,
    run.masked.length
      ? h("p", { class: "note" }, "*** replaces values that are hidden from you.") : null,
    run.state ? newState(run.state, run.masked) : null,
  ];
}

/** @param {import("./contract.js").NewState} state @param {string[]} masked */
function newState(state, masked) {
  return h("div", {},
    h("h4", {}, "There after it had run"),
    state.rows.length
      ? changesTable(state.columns, state.rows, state.rows, "Rows after the change", masked) : null,
    state.reason ? h("p", { class: "note" }, prose(state.reason)) : null);
}
