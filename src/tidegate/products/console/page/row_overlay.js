/** How edits look over the rows of a grid. */

import { sameCell, shownCell } from "./edit_cells.js";
import { keyText } from "./staged_edits.js";

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {import("./staged_edits.js").StagedEdits} StagedEdits */

/** @type {import("./edited_rows.js").Overlay} */
export const OVERLAY = {
  current(edits, key, row) {
    return edits.stored.peek().get(keyText(key)) ?? { key, row };
  },

  overlay(edits, key, row) {
    const now = OVERLAY.current(edits, key, row);
    const staged = edits.byKey.peek().get(keyText(now.key));
    if (staged?.kind !== "update") return now.row;
    const shown = [...now.row];
    if (staged?.kind === "update") {
      edits.columns.forEach((name, at) => {
        if (name in staged.cells) shown[at] = shownCell(staged.cells[name]);
      });
    }
    return shown;
  },

  fresh(edits) {
    const made = edits.inserts.value.map(({ id, cells }) => ({
      id, stored: false,
      row: edits.columns.map((name) => (name in cells ? shownCell(cells[name]) : /** @type {DataCell} */ ({ default: true }))),
    }));
    void edits.rows.value;
    return [...made, ...edits.added.value.map(({ id, key, row }) => ({ id, key, row: key ? OVERLAY.overlay(edits, key, row) : row, stored: true }))];
  },

  stateOf(edits, key) {
    const stored = edits.stored.peek().get(keyText(key));
    const staged = edits.byKey.peek().get(keyText(stored?.key ?? key));
    if (staged) return staged.kind;
    return stored === null ? "gone" : stored ? "stored" : "";
  },

  isChanged(edits, target, column) {
    const row = edits.of(target);
    const name = edits.columns[column];
    if (!row || !(name in row.cells)) return false;
    return row.kind === "insert" || !row.before || !sameCell(row.cells[name], row.before[name]);
  },
};
