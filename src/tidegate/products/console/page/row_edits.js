/** Editing of the rows of a table, or of a result: loaded when a grid that may be edited is shown. */

import { offer } from "./actions.js";
import { loadStyle } from "./dom.js";
import { editBar } from "./edit_bar.js";
import { GridEdits } from "./grid_edits.js";
import { rowForm } from "./row_form.js";
import { OVERLAY } from "./row_overlay.js";
import { batch, effect, onEnd } from "./signals.js";
import { tell } from "./state.js";
import { editsOf } from "./staged_edits.js";

/** @typedef {import("./edit_contract.js").Editability} Editability */

/** @param {import("./edit_contract.js").EditTable} table */
const tableName = ({ table, name }) => table ?? name ?? "";

/** @param {import("./edit_contract.js").EditTable} one @param {import("./edit_contract.js").EditTable | null} other */
const isSame = (one, other) => other !== null && tableName(one) === tableName(other) && one.schema === other.schema;

/** @param {import("./edit_start.js").EditOptions} options @param {Editability} found what can be edited */
export function rowEdits({ tab, isQuery, source, grid, rows, columns, panel, refresh, name }, found) {
  const edits = editsOf(tab, isQuery);
  let ended = false;
  edits.about.value = null;
  edits.stored.value = new Map();
  edits.added.value = [];
  const ready = Promise.all([edits.loaded, loadStyle("edit.css")]).then(() => {
    if (ended) return;
    const { table } = edits;
    const other = isQuery && edits.rows.peek().size > 0 && table && found.editable && !isSame(table, found.table) ? tableName(table) : "";
    batch(() => {
      edits.columns = found.result ? found.result.map((each) => each.column ?? "") : columns();
      edits.about.value = other
        ? { ...found, editable: false, reason: `This tab holds changes of ${other}: submit or discard them first.` } : found;
      if (found.editable && !other) rows.use(edits, OVERLAY);
    });
    grid.edit(editing);
    grid.redraw();
    if (found.editable && !other) void edits.flush();
  });
  if (!isQuery) {
    effect(() => {
      const names = columns();
      if (edits.about.peek()) edits.columns = names;
    });
  }
  /** @param {number} row */
  const showForm = (row) => {
    const target = rows.target(row);
    if (!target || !edits.about.peek()?.editable || rows.stateOf(row) === "delete") {
      tell(edits.about.peek()?.reason || "This row cannot be edited.");
      return;
    }
    const number = rows.numberOf(row);
    panel.value = rowForm({ edits, target, source, title: number === null ? "New row" : `Row ${number}`, close: () => {
      panel.value = null;
      grid.focus();
    } });
  };
  const controller = new GridEdits({ grid, rows, edits, source, showForm });
  const bar = editBar(edits, { insert: () => controller.insert(), finish: () => controller.finish(), refresh: () => {
    edits.forget();
    refresh();
  } });
  /** @type {import("./grid.js").GridEditing} */
  const editing = {
    press: (event, spot, range) => {
      if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return controller.press(event, spot, range);
      void bar.submit();
      return true;
    },
    begin: (spot) => controller.begin(spot), menu: (spot, range) => controller.menu(spot, range),
    paste: (text, range) => controller.paste(text, range), copied: (range, text) => controller.noteCopy(range, text),
  };
  offer(() => (grid.node.offsetParent && edits.about.peek()?.editable ? [
    { label: `New row in ${name}`, keys: "Insert", run: () => controller.insert() },
    { label: "Edit the row as a form", keys: "Shift F2", run: () => showForm(grid.active.peek().row) },
    ...(edits.rows.peek().size ? [
      { label: "Submit the changes", keys: "Ctrl S", run: () => void bar.submit() },
      { label: "Take the last edit back", keys: "Ctrl Z", run: () => edits.undo() },
    ] : []),
  ] : []));
  onEnd(() => {
    ended = true;
    controller.finish();
    rows.use(null, null);
  });
  return { node: bar.node, ready, controller, showForm };
}
