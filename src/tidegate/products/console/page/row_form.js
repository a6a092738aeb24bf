/** A row as a form: all its columns, those too that a grid shows in part. */

import { cellField } from "./cell_field.js";
import { cellWords, takesValues } from "./edit_cells.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { pickKey } from "./key_picker.js";
import { onEnd, signal } from "./signals.js";
import { say } from "./state.js";
import { isolated, prose, visible } from "./text.js";

/** @typedef {import("./edit_contract.js").Cells} Cells */
/** @typedef {import("./edit_contract.js").EditColumn} EditColumn */
/** @typedef {import("./staged_edits.js").StagedEdits} StagedEdits */
/** @typedef {import("./staged_edits.js").Target} Target */

let forms = 0;

/** @param {{ edits: StagedEdits, target: Target, title: string, source: string, close: () => void }} options */
export function rowForm({ edits, target, title, source, close }) {
  const exact = signal(/** @type {Cells | null | undefined} */ (undefined));
  let ended = false;
  onEnd(() => (ended = true));
  if ("id" in target) exact.value = null;
  else {
    void edits.open(target).then((before) => {
      if (ended) return;
      if (before) exact.value = before;
      else close();
    });
  }
  const id = (forms += 1);
  const panel = h("aside", { class: "panel row-form", "aria-label": title, tabindex: "-1",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key === "Escape") close();
    } },
    h("button", { class: "close", "aria-label": "Close", onclick: close }, icon("close")),
    h("h2", {}, title),
    () => (exact.value === undefined ? h("p", { class: "note" }, "Reading the row …") : fields(edits, target, exact.value, source, id, close)));
  // What is typed before the row is read is not for the grid.
  queueMicrotask(() => panel.contains(document.activeElement) || panel.focus());
  return panel;
}

/** @param {StagedEdits} edits @param {Target} target @param {Cells | null} before @param {string} source
 * @param {number} id @param {() => void} close */
function fields(edits, target, before, source, id, close) {
  const about = edits.about.peek();
  const staged = edits.of(target);
  const problem = signal("");
  const made = (about?.columns ?? []).map((column) => {
    const cell = staged && column.name in staged.cells ? staged.cells[column.name] : before ? before[column.name] ?? null : { default: /** @type {const} */ (true) };
    return { column, cell, field: takesValues(column, "id" in target) ? cellField({
      column, cell, label: column.name, long: true, onPick: column.references ? () => void pick(column) : null,
    }) : null };
  });
  /** @param {EditColumn} column */
  const pick = async (column) => {
    const { references } = column;
    const values = references && await pickKey(source, references);
    if (!values || !references) return;
    for (const each of made) {
      const at = references.from.indexOf(each.column.name);
      const control = each.field?.control;
      if (at < 0 || !(control instanceof HTMLInputElement || control instanceof HTMLTextAreaElement)) continue;
      control.value = values[at];
      control.dispatchEvent(new Event("input"));
    }
  };
  const keep = () => {
    const cells = /** @type {Cells} */ ({});
    for (const { column, field } of made) {
      if (!field?.isChanged()) continue;
      const { cell, problem: why } = field.read();
      if (why) {
        problem.value = why;
        field.control.focus();
        return;
      }
      cells[column.name] = cell;
    }
    if (Object.keys(cells).length) {
      edits.write([{ target, cells }]);
      say("The row is changed; it is written when you submit.");
    }
    close();
  };
  queueMicrotask(() => made.find(({ field }) => field)?.field?.control.focus());
  return h("form", { onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), keep()),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep();
    } },
    made.map(({ column, cell, field }, at) => h("div", { class: "form-field" },
      h("div", { class: "form-name", id: `form-${id}-${at}` }, isolated(column.name), " ",
        h("span", { class: "note" }, visible(column.type), column.key ? ", key" : "", column.nullable ? "" : ", not NULL")),
      field?.node ?? h("p", { class: "note" }, column.masked ? "masked" : visible(cellWords(cell).slice(0, 200)), " – ", visible(column.reason || "takes no values")))),
    () => (problem.value ? h("p", { class: "error", role: "alert" }, prose(problem.value)) : null),
    h("div", { class: "panel-actions" }, h("button", { type: "submit", class: "primary", title: "Ctrl Enter" }, "Keep"),
      h("button", { type: "button", class: "quiet", onclick: close }, "Cancel")));
}

