/** A statement, coloured by the server's own lexer, whole at any length. */

import { h } from "./dom.js";
import { visible } from "./text.js";

const PLAIN = new Set(["plain", "space", "operator", "name"]);
const CHUNK = 400;

/** @param {[string, string][]} tokens */
export function statementView(tokens) {
  const chunks = /** @type {Node[]} */ ([]);
  let chunk = h("span", { class: "chunk" });
  let held = 0;
  for (const [kind, text] of tokens) {
    if (PLAIN.has(kind)) chunk.append(...visible(text));
    else chunk.append(h("span", { class: `t-${kind.replace(/[^a-z]/g, "")}` }, visible(text)));
    held += 1;
    if (held >= CHUNK && text.includes("\n")) {
      chunks.push(chunk);
      chunk = h("span", { class: "chunk" });
      held = 0;
    }
  }
  chunks.push(chunk);
  return h("pre", { class: "statement", dir: "ltr" }, h("code", {}, chunks));
}

/** A statement that came as text. @param {string} text */
export const plainStatement = (text) => statementView([["name", text]]);
