/** Rows that others have changed: yours, theirs and before, and the choice between them. */

import { cellWords } from "./edit_cells.js";
import { h } from "./dom.js";
import { tableBox } from "./rows.js";
import { counted, isolated, number, visible } from "./text.js";

/** @typedef {import("./edit_contract.js").Cell} Cell */
/** @typedef {import("./edit_contract.js").Cells} Cells */
/** @typedef {import("./edit_contract.js").Conflict} Conflict */
/** @typedef {import("./staged_edits.js").Row} Row */
/** @typedef {import("./staged_edits.js").StagedEdits} StagedEdits */

const LONGEST = 300;
const WORDS = {
  changed: "Another has changed this row since you saw it.",
  gone: "Another has deleted this row since you saw it.",
  exists: "A row with this key is there already.",
};

/** @param {StagedEdits} edits @param {import("./edit_contract.js").Submission} found */
export function conflictsView(edits, { conflicts, conflict_count: count }) {
  const left = () => conflicts.filter(({ id }) => edits.rows.value.has(id));
  /** @param {Conflict[]} all */
  const keepMine = (all) => {
    const rows = all.flatMap((conflict) => mine(edits.rows.peek().get(conflict.id), conflict));
    edits.restage(rows, all.map(({ id }) => id));
  };
  return h("section", { class: "conflicts", role: "alert", "aria-label": "Conflicts" },
    h("p", {}, h("strong", {}, `${counted(count, "row")} ${count === 1 ? "is" : "are"} not as you saw ${count === 1 ? "it" : "them"}. Nothing was written. `),
      "Choose for each, then submit again."),
    () => (left().length ? left().map((conflict) => conflictView(edits, conflict, keepMine))
      : h("p", { class: "good" }, count > conflicts.length
        ? `These ${number(conflicts.length)} are decided. Submit again: the others are shown then.` : "All are decided. Submit again.")),
    () => (left().length > 1 ? h("div", { class: "choose" },
      h("button", { class: "small", onclick: () => keepMine(left().filter(({ problem }) => problem !== "exists")) }, "Keep all of mine"),
      h("button", { class: "small", onclick: () => edits.discard(left().map(({ id }) => id)) }, "Take all of theirs")) : null));
}

/** The edit again, over what is there now. An edit of a row that is gone becomes a new row.
 * @param {Row | undefined} row @param {Conflict} conflict @returns {Row[]} */
function mine(row, { problem, columns }) {
  if (!row) return [];
  if (problem !== "gone") return [row];
  if (row.kind === "delete") return [];
  const cells = { ...row.before, ...Object.fromEntries(columns.map(({ name, yours }) => [name, yours])), ...row.cells };
  return [{ ...row, kind: "insert", key: null, cells }];
}

/** @param {StagedEdits} edits @param {Conflict} conflict @param {(all: Conflict[]) => void} keepMine */
function conflictView(edits, conflict, keepMine) {
  const { id, problem, columns, theirs } = conflict;
  const row = edits.rows.peek().get(id);
  const name = row?.key ? row.key.join(", ") : "new row";
  const deletes = row?.kind === "delete";
  const keep = problem === "exists" ? null : problem === "gone" ? (deletes ? null : "Add mine as a new row")
    : deletes ? "Delete it all the same" : "Keep mine";
  /** @param {Cell} cell */
  const text = (cell) => h("span", { class: cell === null || "default" in cell ? "null" : "" }, visible(cellWords(cell).slice(0, LONGEST)));
  return h("section", { class: "one-conflict", "aria-label": `Row ${name}` },
    h("p", {}, "Row ", h("strong", {}, isolated(name)), ": ", WORDS[problem], " ",
      deletes ? "You delete it." : null),
    columns.length ? tableBox(`Row ${name}: before, theirs, yours`, h("table", { class: "changes" },
      h("thead", {}, h("tr", {}, ["Column", "Before", "Theirs", "Yours"].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, columns.map((each) => h("tr", {}, h("th", { scope: "row" }, isolated(each.name)),
        h("td", {}, text(each.before)), h("td", { class: "remove" }, problem === "gone" ? "–" : text(each.theirs)),
        h("td", { class: "add" }, deletes ? "–" : text(each.yours))))))) : null,
    h("div", { class: "choose" },
      keep ? h("button", { class: "small", onclick: () => keepMine([conflict]) }, keep) : null,
      h("button", { class: "small", onclick: () => edits.discard([id]) },
        problem === "exists" || (problem === "gone" && !theirs) ? "Drop mine" : "Take theirs"),
      problem === "exists" ? h("span", { class: "note" }, "Or edit the key of the new row.") : null));
}
