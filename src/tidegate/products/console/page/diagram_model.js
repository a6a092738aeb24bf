/** What a diagram shows: tables with their size and lines, and the keys between them. */

/** @typedef {import("./diagram_contract.js").Box} Box */
/** @typedef {import("./diagram_contract.js").DiagramFacts} DiagramFacts */
/** @typedef {import("./diagram_contract.js").Model} Model */
/** @typedef {import("./diagram_contract.js").Spot} Spot */
/** @typedef {import("./diagram_contract.js").Wire} Wire */

import { visible } from "./text.js";

export const [HEAD, LINE, FOOT] = [28, 19, 6];
/** The width of a letter of the fixed-width font at 12 pixels: a little more than it has. */
export const LETTER = 7.3;
const [MOST_NAME, MOST_TYPE, LEAST] = [28, 18, 116];

/** The name of a table as a key. @param {string} schema @param {string} name */
export const keyOf = (schema, name) => JSON.stringify([schema, name]);

/** The text with what would be invisible, or reorder others, written out. @param {string} text */
export const plain = (text) => visible(text).map((part) => (typeof part === "string" ? part : part.textContent)).join("");

/** @param {string} text @param {number} most */
function clipped(text, most) {
  const letters = [...text];
  let width = 0;
  for (let at = 0; at < letters.length; at += 1) {
    width += lettersOf(letters[at]);
    if (width > most) return `${letters.slice(0, Math.max(1, at - 1)).join("")}…`;
  }
  return text;
}

/** How many letters wide a text is: those of the East take two. @param {string} text */
function lettersOf(text) {
  let width = 0;
  for (const letter of text) width += /** @type {number} */ (letter.codePointAt(0)) > 0x2e7f ? 2 : 1;
  return width;
}

/** @param {DiagramFacts} facts @param {"keys" | "all"} mode @param {boolean} guessed whether to show guessed keys
 * @returns {Model} */
export function modelOf({ tables, links }, mode, guessed) {
  const shown = links.filter((link) => guessed || !link.guessed);
  const linked = tables.map(() => /** @type {Set<string>} */ (new Set()));
  for (const { from, columns, to, references } of shown) {
    for (const name of columns) linked[from].add(name);
    for (const name of references) linked[to].add(name);
  }
  const boxes = tables.map((facts, index) => boxOf(facts, mode, linked[index]));
  const wires = shown.map((link) => ({
    facts: link, from: link.from, to: link.to,
    fromLine: boxes[link.from].lineOf.get(link.columns[0]) ?? -1,
    toLine: boxes[link.to].lineOf.get(link.references[0]) ?? -1,
  }));
  return { boxes, wires };
}

/** @param {import("./diagram_contract.js").TableFacts} facts @param {"keys" | "all"} mode @param {Set<string>} linked @returns {Box} */
function boxOf(facts, mode, linked) {
  const columns = mode === "all" ? facts.columns
    : facts.columns.filter(({ name, key, refers }) => key || refers || linked.has(name));
  const lines = columns.map(({ name, type, key, refers, masked }) => ({
    mark: key ? "PK" : refers || linked.has(name) ? "FK" : "", name: clipped(plain(name), MOST_NAME),
    type: clipped(plain(type), MOST_TYPE), masked,
  }));
  const title = clipped(plain(facts.name), MOST_NAME + 8);
  const names = Math.max(0, ...lines.map(({ name }) => lettersOf(name)));
  const types = Math.max(0, ...lines.map(({ type }) => lettersOf(type)));
  const width = Math.max(LEAST, lettersOf(title) * (LETTER + 0.4) + 24, lines.length ? 36 + (names + types + 2) * LETTER : 0);
  return {
    facts, title, lines, key: keyOf(facts.schema, facts.name),
    lineOf: new Map(columns.map(({ name }, at) => [name, at])),
    w: Math.ceil(width), h: HEAD + lines.length * LINE + (lines.length ? FOOT : 0),
  };
}

/** The middle of a line of a table, or of its head. @param {Spot} spot @param {number} line */
const heightOf = ([, y], line) => (line < 0 ? y + HEAD / 2 : y + HEAD + line * LINE + LINE / 2 + 1);

/** The way of a key, as the data of a path: from its column to the one that it refers to, where it ends
 * in a foot with three toes at the side of the many, and a bar at the other.
 * @param {Model} model @param {Wire} wire @param {Spot[]} spots */
export function pathOf({ boxes }, { from, to, fromLine, toLine }, spots) {
  const [one, other] = [spots[from], spots[to]];
  const [y1, y2] = [heightOf(one, fromLine), heightOf(other, toLine)];
  const [left1, right1] = [one[0], one[0] + boxes[from].w];
  const [left2, right2] = [other[0], other[0] + boxes[to].w];
  let [side1, side2] = [-1, 1];
  if (from === to) side1 = 1;
  else if (left2 > right1 + 8) [side1, side2] = [1, -1];
  else if (right2 + 8 > left1) {
    // One is above the other: around at the side that is nearer for both.
    const side = Math.abs(right1 - right2) <= Math.abs(left1 - left2) ? 1 : -1;
    [side1, side2] = [side, side];
  }
  const [x1, x2] = [side1 > 0 ? right1 : left1, side2 > 0 ? right2 : left2];
  const bend = Math.max(28, Math.min(120, Math.abs(x2 - x1) / 2));
  const [c1, c2] = [x1 + side1 * bend, x2 + side2 * bend];
  const toe = x1 + side1 * 10;
  const bar = x2 + side2 * 7;
  return `M${x1} ${y1}C${c1} ${y1} ${c2} ${y2} ${x2} ${y2}M${x1} ${y1 - 5}L${toe} ${y1}L${x1} ${y1 + 5}M${bar} ${y2 - 5}V${y2 + 5}`;
}

/** The edges of all tables together. @param {Model} model @param {Spot[]} spots */
export function boundsOf({ boxes }, spots) {
  let [left, top, right, bottom] = [0, 0, 1, 1];
  spots.forEach(([x, y], index) => {
    if (index === 0) [left, top, right, bottom] = [x, y, x + boxes[0].w, y + boxes[0].h];
    [left, top] = [Math.min(left, x), Math.min(top, y)];
    [right, bottom] = [Math.max(right, x + boxes[index].w), Math.max(bottom, y + boxes[index].h)];
  });
  return { left, top, right, bottom };
}

/** The key of a link, in words. @param {Model} model @param {Wire} wire */
export function wireText({ boxes }, { facts, from, to }) {
  const kind = facts.guessed ? (facts.confirmed ? ", by the values" : ", by the names alone") : "";
  return `${plain(boxes[from].facts.name)} (${facts.columns.map(plain).join(", ")}) refers to ` +
    `${plain(boxes[to].facts.name)} (${facts.references.map(plain).join(", ")})${kind}`;
}
