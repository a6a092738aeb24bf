/**
 * The beginning of editing under a grid: whether its rows can be edited, or why not, before anyone types.
 * What edits them is loaded by the first key that does, or if edits wait in the tab.
 */

import { offer } from "./actions.js";
import { errorText, get } from "./api.js";
import { h } from "./dom.js";
import { unsent } from "./edited_rows.js";
import { icon } from "./icons.js";
import { onEnd, root, signal } from "./signals.js";
import { say, tell } from "./state.js";
import { prose } from "./text.js";

/** @typedef {import("./edit_contract.js").Editability} Editability */
/** @typedef {import("./grid.js").Range} Range */
/** @typedef {ReturnType<typeof import("./row_edits.js").rowEdits>} Edits */
/** @typedef {{ tab: string, isQuery: boolean, source: string, grid: ReturnType<typeof import("./grid.js").grid>,
 *   rows: import("./edited_rows.js").EditedRows, about: () => Promise<Editability>, columns: () => string[],
 *   panel: import("./signals.js").Signal<import("./dom.js").Child>, refresh: () => void, name: string }} EditOptions
 * `columns`: the names that the grid shows; `panel`: what is shown beside the grid. */

/** Whether a key begins to edit. In a result letters do not: they are keys there.
 * @param {KeyboardEvent} event @param {boolean} isQuery */
function edits({ key, ctrlKey, metaKey, altKey }, isQuery) {
  if (key === "F2" || key === "Insert" || key === "Delete") return true;
  const control = ctrlKey || metaKey;
  return control ? key.toLowerCase() === "d" : key.length === 1 && key !== " " && !altKey && !isQuery;
}

/** @param {EditOptions} options */
export function startEditing(options) {
  const { grid, tab } = options;
  const about = signal(/** @type {Editability | null} */ (null));
  const problem = signal("");
  const made = signal(/** @type {Edits | null} */ (null));
  let ended = false;
  let stop = () => {};
  /** @type {Promise<Edits | null> | null} */
  let loading = null;
  /** @type {{ range: Range, text: string } | null} what was copied: its text does not say all of it */
  let copied = null;
  /** Keys that came while it was loaded. @type {(() => void)[]} */
  let waiting = [];

  const known = options.about().then((found) => ended ? found : (about.value = found));
  const load = async () => {
    const what = await known;
    const module = what.editable && !ended ? await import("./row_edits.js") : null;
    if (!module || ended) {
      tell(what.reason || "This cannot be edited.");
      loading = null;
      return null;
    }
    const [found, end] = root(() => module.rowEdits(options, what));
    stop = end;
    await found.ready;
    if (copied) found.controller.noteCopy(copied.range, copied.text);
    made.value = found;
    return found;
  };
  /** Do something once it is loaded, in the order in which it was wanted. @param {(edits: Edits) => void} work */
  const later = (work) => {
    loading ??= load();
    waiting.push(() => made.peek() && work(/** @type {Edits} */ (made.peek())));
    loading.then(() => waiting.splice(0).forEach((each) => each()),
      (error) => ((waiting = []), (loading = null), (problem.value = errorText(error))));
  };
  grid.edit({
    press: (event, spot) => {
      const begins = edits(event, options.isQuery) && spot.row >= 0 && (about.peek()?.editable !== false || event.key === "F2");
      if (!begins && !loading) return false;
      // What is typed while the first key loads the editor goes into it, or is done after that.
      later(({ controller }) => controller.type(event) || void grid.node.dispatchEvent(new KeyboardEvent("keydown", event)));
      return true;
    },
    begin: (spot) => {
      if (about.peek()?.editable !== false) later(({ controller }) => controller.begin(spot));
      return about.peek()?.editable !== false;
    },
    menu: (spot) => (about.peek()?.editable ? [null,
      { label: "New row", keys: "Insert", run: () => later(({ controller }) => controller.insert()) },
      ...(spot.row < 0 ? [] : [
        { label: "Edit the value", keys: "F2", run: () => later(({ controller }) => controller.begin(spot)) },
        { label: "Edit the row as a form", keys: "Shift F2", run: () => later(({ showForm }) => showForm(spot.row)) },
      ])] : []),
    paste: (text, range) => later(({ controller }) => controller.paste(text, range)),
    copied: (range, text) => (copied = { range, text }),
  });
  offer(() => (!made.peek() && grid.node.offsetParent && about.peek()?.editable
    ? [{ label: `New row in ${options.name}`, keys: "Insert", run: () => later(({ controller }) => controller.insert()) }] : []));
  known.then(async () => {
    if (ended) return;
    const waits = await get(`data/tabs/${encodeURIComponent(tab)}/edits`);
    const open = waits.result && waits.result.state !== "done";
    if (!ended && (waits.rows.length || open || unsent.get(tab)?.size)) loading ??= load();
  }).catch((error) => ended || (problem.value = errorText(error)));
  onEnd(() => {
    ended = true;
    stop();
    grid.edit(null);
  });
  const node = () => {
    if (made.value) return made.value.node;
    if (problem.value) return h("p", { class: "error", role: "alert" }, prose(problem.value));
    const found = about.value;
    return found && h("div", { class: "edit-bar" }, found.editable
      ? [h("button", { class: "small", title: "Insert", onclick: () => later(({ controller }) => controller.insert()) }, icon("add"), "Row"),
        h("span", { class: "note wide-only" }, options.isQuery ? "F2 or a double click edits a value." : "F2, a double click or typing edits a value.")]
      : h("span", { class: "read-only" }, icon("mask"), h("span", {}, "Read-only: ", prose(found.reason))));
  };
  /** @param {number} row */
  const showForm = (row) => later((edits) => edits.showForm(row));
  return { node, about, showForm };
}
