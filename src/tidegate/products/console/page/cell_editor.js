/** The editor of one cell, in its place in the grid. */

import { cellField } from "./cell_field.js";
import { h } from "./dom.js";
import { root, signal } from "./signals.js";
import { tell } from "./state.js";
import { prose } from "./text.js";

/** @typedef {import("./edit_contract.js").Cell} Cell */
/** @typedef {import("./edit_contract.js").EditColumn} EditColumn */
/** Where the focus goes after it: 0, 1 for down, 2 for right, 3 for left. @typedef {0 | 1 | 2 | 3} Onward */
/** @typedef {{ host: HTMLElement, place: { left: number, top: number, width: number, room: number, bottom: number },
 *   column: EditColumn, cell: Cell | undefined, typed: string | null, label: string,
 *   exact: Promise<Cell | undefined>, commit: (cell: Cell) => void, leave: (onward: Onward) => void,
 *   pick: (() => void) | null }} EditorOptions
 * `cell` is what is known of the value; `exact` the value whole, undefined if it cannot be read. */

const LEAST = 190;
const LONG = 320;

/** @param {HTMLElement} control @returns {control is HTMLInputElement | HTMLTextAreaElement} */
const hasText = (control) => control instanceof HTMLInputElement || control instanceof HTMLTextAreaElement;

/** @param {HTMLElement} control */
const isAllSelected = (control) => hasText(control) && control.selectionStart === 0 && control.selectionEnd === control.value.length;

/** @param {HTMLElement} control */
const selectAll = (control) => hasText(control) && control.select();

/** @param {EditorOptions} options */
export function cellEditor({ host, place, column, cell, typed, label, exact, commit, leave, pick }) {
  const problem = signal("");
  let over = false;
  const [[node, field], stop] = root(() => {
    const made = cellField({ column, cell: cell ?? null, label, typed, long: true, onChange: () => (problem.value = ""),
      onPick: pick && (() => {
        close(0);
        pick();
      }) });
    const box = h("div", { class: "cell-editor", role: "row", onkeydown: press, onfocusout: (/** @type {FocusEvent} */ event) => {
      // Leaving keeps what was typed; a value that is none stays here.
      if (!over && event.relatedTarget && !box.contains(/** @type {Node} */ (event.relatedTarget))) finish(0);
    } }, h("div", { role: "gridcell" }, made.node, () => (problem.value ? h("p", { class: "error", role: "alert" }, prose(problem.value)) : null)));
    return /** @type {const} */ ([box, made]);
  });
  const wide = column.editor === "json" || column.editor === "bytes" ? LONG : LEAST;
  node.style.minWidth = `${Math.min(Math.max(place.width, wide), place.room)}px`;
  node.style.maxWidth = `${place.room}px`;
  node.style.left = `${place.left}px`;
  node.style.top = `${place.top}px`;
  host.append(node);
  const { height } = node.getBoundingClientRect();
  if (place.top + height > place.bottom) node.style.top = `${Math.max(0, place.bottom - height)}px`;
  if (cell === undefined) field.control.setAttribute("aria-busy", "true");
  void exact.then((found) => {
    field.control.removeAttribute("aria-busy");
    if (found === undefined && cell === undefined) {
      close(0);
      tell("This value cannot be edited here.");
    } else if (found !== undefined) {
      // The caret may have been moved since: then what is typed next goes there.
      const all = isAllSelected(field.control);
      field.set(found);
      if (all && typed === null && !field.isChanged()) selectAll(field.control);
    }
  });
  field.control.focus({ preventScroll: true });
  if (typed === null) selectAll(field.control);
  else if (hasText(field.control)) field.control.setSelectionRange(typed.length, typed.length);

  /** @param {KeyboardEvent} event */
  function press(event) {
    event.stopPropagation();
    if (event.isComposing || event.defaultPrevented) return;
    const inButton = event.target instanceof HTMLButtonElement;
    if (event.key === "Escape") close(0);
    else if (event.key === "Enter" && !event.shiftKey && !event.altKey && !inButton) finish(1);
    else if (event.key === "Tab" && event.target === field.control) finish(event.shiftKey ? 3 : 2);
    else if (event.key.toLowerCase() === "s" && (event.ctrlKey || event.metaKey)) finish(0);
    else return;
    event.preventDefault();
  }

  /** Take the value, if it is one. @param {Onward} onward @returns {boolean} */
  function finish(onward) {
    if (over) return true;
    const { cell: next, problem: why } = field.read();
    if (field.isChanged() && why) {
      problem.value = why;
      field.control.focus();
      return false;
    }
    if (field.isChanged()) commit(next);
    close(onward);
    return true;
  }

  /** @param {Onward} onward */
  function close(onward) {
    if (over) return;
    over = true;
    node.remove();
    stop();
    leave(onward);
  }

  /** @param {KeyboardEvent} event */
  function type(event) {
    const { control } = field;
    const isLetter = event.key.length === 1 && !event.ctrlKey && !event.metaKey;
    if (isLetter && hasText(control)) {
      control.setRangeText(event.key, control.selectionStart ?? 0, control.selectionEnd ?? 0, "end");
      control.dispatchEvent(new Event("input"));
    } else control.dispatchEvent(new KeyboardEvent("keydown", event));
  }

  return { finish: () => finish(0), close: () => close(0), type };
}
