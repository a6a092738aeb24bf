/** Values of edits: as cells of a grid, as texts to paste, and whether two are the same. */

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {import("./edit_contract.js").Cell} Cell */
/** @typedef {import("./edit_contract.js").EditColumn} EditColumn */

const SHOWN = 4_096;
const TEXTS = new Set(["text", "json", "enum", "array", "other"]);

const AS_SHOWN = new Set(["text", "integer", "decimal", "float", "boolean", "date", "uuid", "json", "bytes", "enum"]);

/** Whether a value of the column is what a grid shows of it. An array, a moment or an interval may be written
 * in another way there, and a class is not shown. @param {EditColumn} column */
export const isAsShown = (column) => column.classes === null && AS_SHOWN.has(column.editor);

/** Whether an empty text is a value of the column. @param {EditColumn} column */
export const takesEmpty = (column) => TEXTS.has(column.editor) && column.editor !== "json" && column.editor !== "enum" ||
  column.classes !== null;

/** Whether a column takes values, in a new row or in one that is there. @param {EditColumn} column @param {boolean} isNew */
export const takesValues = (column, isNew) => (isNew ? column.insertable ?? column.editable : column.editable);

/** @param {Cell | undefined} cell @returns {cell is { default: true }} */
export const isDefault = (cell) => Boolean(cell && "default" in cell);

/** A value as a grid shows it. @param {Cell} cell @returns {DataCell} */
export function shownCell(cell) {
  if (cell === null) return null;
  if ("default" in cell) return { default: true };
  if ("hex" in cell) return { binary: cell.hex.length / 2, text: cell.hex.slice(0, SHOWN) };
  return cell.text.length > SHOWN
    ? { text: cell.text.slice(0, SHOWN), bytes: new TextEncoder().encode(cell.text).length, cut: true } : cell.text;
}

/** What a grid shows as a value of an edit; undefined where it shows a part.
 * @param {DataCell | undefined} shown @returns {Cell | undefined} */
export function cellOfShown(shown) {
  if (shown === null) return null;
  if (typeof shown === "string") return { text: shown };
  if (!shown || "cut" in shown) return undefined;
  if ("default" in shown) return { default: true };
  return shown.text.length === shown.binary * 2 ? { hex: shown.text } : undefined;
}

/** Whether a value writes the same as another: one without a class keeps that of the other.
 * @param {Cell} cell @param {Cell | undefined} other */
export function sameCell(cell, other) {
  if (cell === null || other === null || other === undefined) return cell === other;
  if ("text" in cell && "text" in other) {
    return cell.text === other.text && (cell.class === undefined || cell.class === other.class);
  }
  return JSON.stringify(cell) === JSON.stringify(other);
}

/** A text as a cell in words, for a person. @param {Cell} cell */
export function cellWords(cell) {
  if (cell === null) return "NULL";
  if ("default" in cell) return "DEFAULT";
  return "hex" in cell ? `0x${cell.hex}` : cell.text;
}

/** What was typed or pasted, as a value of a column. An empty field is the empty text where that is a
 * value, and otherwise NULL. @param {string} text @param {EditColumn} column @returns {Cell} */
export function typedCell(text, column) {
  if (text === "" && !takesEmpty(column)) return column.has_default && !column.nullable ? { default: true } : null;
  if (column.editor === "bytes") return { hex: text.replace(/^(?:\\x|0x)/i, "").replace(/\s+/g, "").toLowerCase() };
  return { text };
}

const INTEGER = /^\s*[-+]?\d+\s*$/;
const NUMBER = /^\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?\s*$|^\s*(?:nan|[-+]?inf(?:inity)?)\s*$/i;

/** Why a value cannot be one of the column, or "". The database has the last word.
 * @param {Cell} cell @param {EditColumn} column */
export function whyInvalid(cell, column) {
  if (cell === null) return column.nullable ? "" : `${column.name} takes no NULL.`;
  if ("default" in cell) return column.has_default ? "" : `${column.name} has no default.`;
  if ("hex" in cell) return /^(?:[\da-f]{2})*$/i.test(cell.hex) ? "" : "Bytes are written in hexadecimal, such as 00ff.";
  const { text } = cell;
  if (column.classes) return classProblem(cell, column);
  if (column.length !== null && [...text].length > column.length) return `${column.name} takes ${column.length} characters at most.`;
  switch (column.editor) {
    case "integer": return INTEGER.test(text) ? "" : `${column.name} takes a whole number.`;
    case "decimal": case "float": return NUMBER.test(text) ? "" : `${column.name} takes a number.`;
    case "boolean": return /^(?:true|false)$/i.test(text) ? "" : `${column.name} takes true or false.`;
    case "enum": return column.values?.includes(text) === false ? `${column.name} takes one of ${column.values.join(", ")}.` : "";
    case "json": return jsonProblem(text);
    default: return "";
  }
}

/** @param {{ text: string, class?: string }} cell @param {EditColumn} column */
function classProblem(cell, column) {
  if (cell.class === "integer" && !INTEGER.test(cell.text)) return "An integer is a whole number.";
  if (cell.class === "real" && !NUMBER.test(cell.text)) return "A real is a number.";
  return column.editor === "json" ? jsonProblem(cell.text) : "";
}

/** @param {string} text */
function jsonProblem(text) {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `It is no JSON: ${/** @type {Error} */ (error).message}`;
  }
}

/** Text between tabs as spreadsheets copy it, as rows of fields. @param {string} text @returns {string[][]} */
export function readTabSeparated(text) {
  const rows = /** @type {string[][]} */ ([]);
  let row = /** @type {string[]} */ ([]);
  const field = /(?:"((?:[^"]|"")*)"|([^\t\r\n]*))(\t|\r\n|\r|\n|$)/y;
  for (;;) {
    const found = /** @type {RegExpExecArray} */ (field.exec(text));
    row.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
    if (found[3] === "\t") continue;
    rows.push(row);
    if (found[3] === "" || field.lastIndex >= text.length) return rows;
    row = [];
  }
}
