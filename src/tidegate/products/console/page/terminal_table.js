/** Results as a terminal prints them: lines of fixed width, or a line for each value. Imports nothing.
 *
 * @typedef {import("./data_contract.js").DataCell} DataCell
 * @typedef {{ name: string, kind: string }} Head
 */

const MOST_WIDTH = 60;
/** @type {Record<string, string>} */
const SIGNS = { "\n": "↵", "\r": "↵", "\t": "⇥" };

/** A value as one line of text. @param {DataCell} cell */
export function textOf(cell) {
  if (cell === null) return "NULL";
  if (typeof cell !== "string" && "default" in cell) return "DEFAULT";
  const text = typeof cell === "string" ? cell : "cut" in cell ? `${cell.text}…` : cell.text;
  return text.replace(/[\n\r\t]/g, (sign) => SIGNS[sign]);
}

/** How many columns of the screen a text takes. @param {string} text */
export function widthOf(text) {
  let width = 0;
  for (const letter of text) {
    const code = /** @type {number} */ (letter.codePointAt(0));
    width += code > 0x2e7f ? 2 : code >= 0x300 && code <= 0x36f ? 0 : 1;
  }
  return width;
}

/** @param {string} text @param {number} most */
function clipped(text, most) {
  if (widthOf(text) <= most) return text;
  let [kept, width] = ["", 0];
  for (const letter of text) {
    width += widthOf(letter);
    if (width >= most) break;
    kept += letter;
  }
  return `${kept}…`;
}

/** @param {string} text @param {number} width @param {boolean} right */
function padded(text, width, right) {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return right ? space + text : text + space;
}

/** Rows below their heads. @param {Head[]} heads @param {DataCell[][]} rows */
export function tableText(heads, rows) {
  const cells = rows.map((row) => row.map((cell) => clipped(textOf(cell), MOST_WIDTH)));
  const widths = heads.map(({ name }, at) =>
    Math.max(widthOf(clipped(name, MOST_WIDTH)), ...cells.map((row) => widthOf(row[at]))));
  const line = (/** @type {string[]} */ parts) => ` ${parts.join(" | ")} `.trimEnd();
  return [
    line(heads.map(({ name }, at) => padded(clipped(name, MOST_WIDTH), widths[at], false))),
    widths.map((width) => "-".repeat(width + 2)).join("+"),
    ...cells.map((row) => line(row.map((text, at) => padded(text, widths[at], heads[at].kind === "number")))),
  ].join("\n");
}

/** Each row as lines of a name and a value (`\x`). @param {Head[]} heads @param {DataCell[][]} rows @param {number} [first] */
export function expandedText(heads, rows, first = 1) {
  const width = Math.max(0, ...heads.map(({ name }) => widthOf(name)));
  return rows.map((row, at) => [`-[ record ${first + at} ]${"-".repeat(Math.max(1, width - 4))}`,
    ...row.map((cell, column) => `${padded(heads[column].name, width, false)} | ${textOf(cell)}`)].join("\n")).join("\n");
}
