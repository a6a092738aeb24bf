/**
 * A field for one value: by the type of its column, and with NULL, the empty text and DEFAULT as three
 * states that are seen. What is opened and left gives the value that it had.
 */

import { cellWords, isDefault, sameCell, takesEmpty, typedCell, whyInvalid } from "./edit_cells.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { computed, signal } from "./signals.js";
import { visible } from "./text.js";

/** @typedef {import("./edit_contract.js").Cell} Cell */
/** @typedef {import("./edit_contract.js").EditColumn} EditColumn */
/** @typedef {{ node: HTMLElement, control: HTMLElement, read: () => { cell: Cell, problem: string },
 *   isChanged: () => boolean, set: (cell: Cell) => void }} CellField */
/** @typedef {{ column: EditColumn, cell: Cell, label: string, long?: boolean, typed?: string | null,
 *   onPick?: (() => void) | null, onChange?: () => void }} FieldOptions
 * `typed`: what was typed in place of the value; `long`: whether there is room for lines. */

const MOST_FILE = 1_000_000;
const HINTS = /** @type {Record<string, string>} */ ({
  date: "2026-01-31", time: "12:30:00", timestamp: "2026-01-31 12:30:00", timestamp_tz: "2026-01-31 12:30:00+00",
  bytes: "00ff", uuid: "00000000-0000-…", interval: "1 day", json: "{}",
});
const BITS = new Map([["1", "true"], ["0", "false"]]);
const DATES = new Set(["date", "timestamp", "timestamp_tz"]);
const LONG = new Set(["text", "json", "bytes", "other", "array"]);

/** @param {FieldOptions} options @returns {CellField} */
export function cellField(options) {
  const { column } = options;
  return column.editor === "boolean" || column.values ? choiceField(options) : textField(options);
}

/** Values to choose among, with NULL and DEFAULT as entries of their own. @param {FieldOptions} options
 * @returns {CellField} */
function choiceField({ column, cell: first, label, typed, onChange }) {
  const values = column.values ?? ["true", "false"];
  let start = first;
  /** Where a database has no values of true and false, they are 1 and 0. @param {Cell} cell */
  const word = (cell) => (column.classes && BITS.get(cellWords(cell))) || cellWords(cell);
  /** @param {Cell} cell */
  const code = (cell) => (cell === null ? "null" : isDefault(cell) ? "default" : `=${word(cell)}`);
  const known = code(first).slice(1);
  const all = first && !isDefault(first) && !values.includes(known) ? [known, ...values] : values;
  const control = h("select", { "aria-label": label, onchange: () => onChange?.() },
    column.nullable || first === null ? h("option", { value: "null", class: "is-null" }, "NULL") : null,
    column.has_default ? h("option", { value: "default", class: "is-null" }, "DEFAULT") : null,
    all.map((value) => h("option", { value: `=${value}` }, visible(value))));
  control.value = code(first);
  const begun = typed ? all.find((value) => value.toLowerCase().startsWith(typed.toLowerCase())) : undefined;
  if (begun !== undefined) control.value = `=${begun}`;
  /** @returns {Cell} */
  const current = () => (control.value === code(start) ? start
    : control.value === "null" ? null : control.value === "default" ? { default: true } : { text: control.value.slice(1) });
  return {
    node: h("div", { class: "cell-field" }, control), control,
    read: () => ({ cell: current(), problem: sameCell(current(), start) ? "" : whyInvalid(current(), column) }),
    isChanged: () => !sameCell(current(), start),
    set: (cell) => {
      if (sameCell(current(), start)) control.value = code(cell);
      start = cell;
    },
  };
}

/** @param {FieldOptions} options @returns {CellField} */
function textField({ column, cell: first, label, long = false, typed, onPick, onChange }) {
  let start = first;
  const written = first === null || isDefault(first) ? "" : "hex" in first ? first.hex : first.text;
  const state = signal(/** @type {"value" | "null" | "default"} */ (typed ? "value" : first === null ? "null" : isDefault(first) ? "default" : "value"));
  const storage = signal(first && "class" in first ? first.class ?? "" : first && "hex" in first && column.classes ? "blob" : "");
  const touched = signal(Boolean(typed));
  const lines = long && LONG.has(column.editor);
  const properties = {
    "aria-label": label, spellcheck: "false", autocomplete: "off", dir: "auto", value: typed ?? written,
    class: () => `s-${state.value}`, inputmode: /^(?:integer|decimal|float)$/.test(column.editor) ? "decimal" : null,
    placeholder: () => ({ null: "NULL", default: "DEFAULT", value: HINTS[column.editor] ?? (takesEmpty(column) ? "empty text" : "") })[state.value],
    oninput: () => {
      state.value = "value";
      touch();
    },
    // In a field that shows NULL, the key that deletes makes it the empty text.
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Backspace" || state.peek() === "value") return;
      state.value = "value";
      touch();
    },
  };
  const control = lines ? h("textarea", { rows: column.editor === "json" || column.editor === "bytes" ? "4" : "2", ...properties }) : h("input", { type: "text", ...properties });
  const touch = () => {
    touched.value = true;
    onChange?.();
  };
  /** @returns {Cell} */
  const current = () => {
    if (!touched.peek()) return start;
    if (state.peek() === "null") return null;
    if (state.peek() === "default") return { default: true };
    if (storage.peek() === "blob") return { hex: control.value.replace(/\s+/g, "").toLowerCase() };
    const cell = typedCell(control.value, column);
    return storage.peek() && cell && "text" in cell ? { ...cell, class: storage.peek() } : cell;
  };
  /** @param {"null" | "default"} name @param {string} word */
  const toggle = (name, word) => h("button", {
    type: "button", class: "small state", "aria-pressed": () => String(state.value === name), tabindex: long ? null : "-1",
    title: name === "null" ? "Alt N" : "Alt D",
    onclick: () => {
      state.value = state.peek() === name ? "value" : name;
      if (state.peek() !== "value") control.value = "";
      touch();
      control.focus();
    },
  }, word);
  const nullButton = column.nullable || first === null ? toggle("null", "NULL") : null;
  const defaultButton = column.has_default ? toggle("default", "DEFAULT") : null;
  const node = h("div", {
    class: `cell-field e-${column.editor.replace(/[^a-z_]/g, "")}`,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (!event.altKey || event.ctrlKey || event.metaKey) return;
      const button = { KeyN: nullButton, KeyD: defaultButton }[event.code];
      if (button) button.click();
      else if (event.key === "ArrowDown") (onPick ?? openCalendar)?.();
      else return;
      event.preventDefault();
    },
  }, control, nullButton, defaultButton,
  column.classes ? h("select", { class: "small", "aria-label": `Class of ${label}`, onchange: (/** @type {Event} */ event) => {
    storage.value = /** @type {HTMLSelectElement} */ (event.target).value;
    touch();
  } }, ["", ...column.classes].map((each) => h("option", { value: each, selected: each === storage.peek() }, each || "class as it was"))) : null,
  onPick ? h("button", { type: "button", class: "small", title: "Alt ↓", onclick: onPick }, "Choose …") : null);
  const openCalendar = DATES.has(column.editor) ? addCalendar(node, control, properties.oninput) : null;
  if (column.editor === "bytes") addFile(node, control, properties.oninput);
  if (column.editor === "json" && lines) {
    node.append(h("button", { type: "button", class: "small", onclick: () => {
      try {
        control.value = JSON.stringify(JSON.parse(control.value), null, 2);
        properties.oninput();
      } catch {
        control.focus();
      }
    } }, "Indent"));
  }
  const changed = computed(() => touched.value);
  return {
    node, control,
    read: () => ({ cell: current(), problem: sameCell(current(), start) ? "" : whyInvalid(current(), column) }),
    isChanged: () => changed.peek() && !sameCell(current(), start),
    set: (cell) => {
      start = cell;
      if (touched.peek()) return;
      control.value = cell === null || isDefault(cell) ? "" : "hex" in cell ? cell.hex : cell.text;
      state.value = cell === null ? "null" : isDefault(cell) ? "default" : "value";
    },
  };
}

/** The browser's calendar: it gives the date, and leaves the time as it is.
 * @param {HTMLElement} node @param {HTMLInputElement | HTMLTextAreaElement} control @param {() => void} changed */
function addCalendar(node, control, changed) {
  const day = /^\d{4}-\d{2}-\d{2}/;
  const calendar = h("input", { type: "date", class: "calendar", tabindex: "-1", "aria-hidden": "true", onchange: () => {
    control.value = day.test(control.value) ? control.value.replace(day, calendar.value) : calendar.value;
    changed();
    control.focus();
  } });
  const open = () => {
    calendar.value = day.exec(control.value)?.[0] ?? "";
    calendar.showPicker();
  };
  node.append(h("button", { type: "button", class: "small", "aria-label": "Calendar", title: "Alt ↓", onclick: open }, icon("clock")), calendar);
  return open;
}

/** The bytes of a file. @param {HTMLElement} node @param {HTMLInputElement | HTMLTextAreaElement} control
 * @param {() => void} changed */
function addFile(node, control, changed) {
  const input = h("input", { type: "file", hidden: true, onchange: async () => {
    const file = input.files?.[0];
    if (!file || file.size > MOST_FILE) return;
    control.value = [...new Uint8Array(await file.arrayBuffer())].map((each) => each.toString(16).padStart(2, "0")).join("");
    changed();
    control.focus();
  } });
  node.append(h("button", { type: "button", class: "small", onclick: () => input.click() }, "File …"), input);
}
