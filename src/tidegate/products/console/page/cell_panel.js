/** One value, whole: pretty printed where it is JSON, and cut where it is too long to be shown. */

import { errorText } from "./api.js";
import { cellText } from "./data_cells.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { onEnd, signal } from "./signals.js";
import { tell } from "./state.js";
import { number, prose, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {import("./data_contract.js").DataColumn} DataColumn */
/** @typedef {import("./data_contract.js").WholeCell} WholeCell */

const MOST_SHOWN = 5_000_000;
const CHUNK = 10_000;
const MOST_PRETTY = 1_000_000;

/** @param {{ column: DataColumn, title: string, cell: DataCell, close: () => void,
 *   read?: ((signal: AbortSignal) => Promise<WholeCell>) | null, extra?: import("./dom.js").Child,
 *   actions?: import("./dom.js").Child }} options
 * `read` gets the whole value where the cell holds a part; null where that is not possible. */
export function cellPanel({ column, title, cell, close, read, extra, actions }) {
  const whole = signal(/** @type {WholeCell | null} */ (null));
  const error = signal("");
  const ended = new AbortController();
  onEnd(() => ended.abort());
  const partial = cell !== null && typeof cell === "object" && !("default" in cell);
  if (partial && read) {
    read(ended.signal).then((found) => (whole.value = found),
      (caught) => ended.signal.aborted || (error.value = errorText(caught)));
  }
  const text = () => whole.value?.text ?? cellText(cell);
  return h("aside", {
    class: "panel cell-panel", "aria-label": "The value that is chosen", tabindex: "0",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    },
  },
    h("button", { class: "close", "aria-label": "Close", onclick: close }, icon("close")),
    h("h2", {}, h("bdi", {}, visible(column.name))),
    h("p", { class: "meta" }, h("span", {}, visible(title)), h("span", {}, h("bdi", {}, visible(column.type))),
      () => sizeNote(cell, whole.value),
      column.masked ? h("span", { class: "tag" }, icon("mask"), " masked") : null),
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    () => (partial && read === null
      ? h("p", { class: "notice" }, "Only the beginning is here: the table has no key to read the value by. Export has it whole.")
      : partial && read && !whole.value && !error.value ? h("p", { class: "note" }, "Reading the whole value …") : null),
    () => valueView(text(), column),
    () => (whole.value && isPart(whole.value)
      ? h("p", { class: "notice" }, "This is the beginning of the value. Export has it whole.") : null),
    h("div", { class: "panel-actions" },
      h("button", { class: "small", onclick: () => void navigator.clipboard.writeText(text() ?? "").then(() => tell("Copied")) },
        icon("copy"), "Copy the value"), actions),
    extra);
}

/** The server sends the beginning alone of what is longer than some megabytes. @param {WholeCell} whole */
const isPart = ({ text, bytes, binary }) =>
  (binary ? text.length / 2 : new TextEncoder().encode(text).length) < bytes;

/** @param {DataCell} cell @param {WholeCell | null} whole */
function sizeNote(cell, whole) {
  if (whole) return h("span", {}, `${number(whole.bytes)} bytes`);
  if (cell !== null && typeof cell === "object") {
    return "default" in cell ? null : h("span", {}, `${number("binary" in cell ? cell.binary : cell.bytes)} bytes`);
  }
  return typeof cell === "string" && cell.length > 80 ? h("span", {}, `${number(cell.length)} characters`) : null;
}

/** @param {string | null} text @param {DataColumn} column */
function valueView(text, column) {
  if (text === null) return h("p", { class: "value is-null" }, "NULL");
  if (text === "") return h("p", { class: "note" }, "Empty text");
  const pretty = prettyJson(text, column);
  const shown = (pretty ?? text).slice(0, MOST_SHOWN);
  const chunks = [];
  for (let at = 0; at < shown.length;) {
    let end = Math.min(shown.length, at + CHUNK);
    const line = shown.slice(at, end).lastIndexOf("\n");
    if (end < shown.length && line > 0) end = at + line + 1;
    else if (/[\ud800-\udbff]/.test(shown[end - 1] ?? "") && end < shown.length) end += 1;
    chunks.push(h("span", { class: "chunk" }, visible(shown.slice(at, end))));
    at = end;
  }
  return [
    h("pre", { class: `value ${pretty ? "is-json" : ""}`, dir: "auto", tabindex: "0", role: "region", "aria-label": "Value" }, chunks),
    (pretty ?? text).length > MOST_SHOWN
      ? h("p", { class: "notice" }, `Cut after ${number(MOST_SHOWN)} characters. Export has it whole.`) : null,
  ];
}

/** @param {string} text @param {DataColumn} column */
function prettyJson(text, column) {
  if (text.length > MOST_PRETTY || !(column.kind === "json" || /^\s*[[{]/.test(text))) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  return indented(text);
}

/** JSON with line ends and indents, and every number and name as it was written. @param {string} text */
function indented(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let [result, depth] = ["", 0];
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, at) => {
    const empty = (token === "}" || token === "]") && (tokens[at - 1] === "{" || tokens[at - 1] === "[");
    if (token === "{" || token === "[") {
      depth += 1;
      result += token + (tokens[at + 1] === "}" || tokens[at + 1] === "]" ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      result += (empty ? "" : line()) + token;
    } else if (token === ",") result += token + line();
    else result += token === ":" ? ": " : token;
  });
  return result;
}
