/** Values of tables: as text, as a cell of a grid, as text to paste. */

import { h } from "./dom.js";
import { hides, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {import("./data_contract.js").DataColumn} DataColumn */

const SHOWN = 256;
const LINES = /\r\n|\r|\n/;

/** The text of a value, or null. @param {DataCell | undefined} value */
export function cellText(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if ("default" in value) return "DEFAULT";
  return "binary" in value ? `0x${value.text}` : value.text;
}

/** Show a value in one line. @param {HTMLElement} node @param {DataCell | undefined} value */
export function fillCell(node, value) {
  const text = cellText(value);
  if (text === null) {
    setText(node, value === undefined ? "" : "NULL");
    return;
  }
  const whole = text.length <= SHOWN;
  const shown = whole ? text : text.slice(0, SHOWN);
  if (whole && !hides(shown) && !LINES.test(shown)) setText(node, shown);
  else {
    const lines = shown.split(LINES);
    node.replaceChildren(...lines.flatMap((line, index) =>
      [...(index ? [h("span", { class: "line-end" }, "↵")] : []), ...visible(line)]));
    if (!whole) node.append("…");
  }
  if (value !== null && typeof value === "object" && "binary" in value) {
    node.append(h("span", { class: "bytes" }, ` ${value.binary} bytes`));
  }
}

/** Nodes are used again and again while a grid is scrolled, so that little is thrown away.
 * @param {HTMLElement} node @param {string} text */
function setText(node, text) {
  const { firstChild } = node;
  if (firstChild instanceof Text && !firstChild.nextSibling) firstChild.data = text;
  else node.textContent = text;
}

/** The class of a value. @param {DataCell | undefined} value @param {DataColumn} column */
export function cellClass(value, column) {
  if (value === undefined) return "grid-cell unloaded";
  const kind = `grid-cell k-${column.kind.replace(/[^a-z]/g, "")}`;
  return `${kind}${value === null ? " is-null" : value === "" ? " is-empty" : ""}${value !== null && typeof value === "object" && "default" in value ? " is-default" : ""}${column.masked ? " is-masked" : ""}`;
}

/** Rows as text between tabs, as spreadsheets paste it. @param {DataCell[][]} rows */
export const tabSeparated = (rows) => rows.map((row) => row.map((value) => {
  const text = cellText(value) ?? "";
  return /["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join("\t")).join("\n");
