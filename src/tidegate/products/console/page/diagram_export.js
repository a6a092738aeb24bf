/** A diagram as a file: SVG, PNG, and the text of Mermaid. */

import { boundsOf, HEAD, LINE, pathOf } from "./diagram_model.js";
import { say } from "./state.js";

/** @typedef {import("./diagram_contract.js").Model} Model */
/** @typedef {import("./diagram_contract.js").Spot} Spot */

const MARGIN = 24;
const MOST_SIDE = 8_192;
const MOST_PIXELS = 32_000_000;
const LOOKS = {
  light: { ground: "#ffffff", head: "#e3f2f4", line: "#8a95a3", text: "#1b2430", muted: "#556070", wire: "#0b6373" },
  dark: { ground: "#181d24", head: "#16333a", line: "#6b7686", text: "#e3e8ee", muted: "#9ca8b8", wire: "#63c9d6" },
};

/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** All tables as one picture, with its looks inside. @param {Model} model @param {Spot[]} spots
 * @param {keyof typeof LOOKS} look */
export function svgOf(model, spots, look = "light") {
  const { ground, head, line, text, muted, wire } = LOOKS[look];
  const { left, top, right, bottom } = boundsOf(model, spots);
  const [w, h] = [right - left + 2 * MARGIN, bottom - top + 2 * MARGIN];
  const parts = [`<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="${left - MARGIN} ${top - MARGIN} ${w} ${h}"` +
    ` font-family="ui-monospace, 'DejaVu Sans Mono', monospace" font-size="12">`,
  `<rect x="${left - MARGIN}" y="${top - MARGIN}" width="${w}" height="${h}" fill="${ground}"/>`];
  for (const each of model.wires) {
    const dashes = each.facts.guessed ? ' stroke-dasharray="6 5"' : "";
    parts.push(`<path d="${pathOf(model, each, spots)}" fill="none" stroke="${wire}"${dashes}/>`);
  }
  model.boxes.forEach((box, index) => {
    const [x, y] = spots[index];
    parts.push(`<g transform="translate(${x} ${y})"><rect width="${box.w}" height="${box.h}" rx="6" fill="${ground}" stroke="${line}"/>`,
      `<rect x=".5" y=".5" width="${box.w - 1}" height="${HEAD - 1}" rx="5.5" fill="${head}"/>`,
      `<text x="12" y="18" font-weight="700" fill="${text}">${escaped(box.title)}</text>`);
    box.lines.forEach(({ mark, name, type, masked }, at) => {
      const base = HEAD + at * LINE + 15;
      if (mark) parts.push(`<text x="8" y="${base}" font-size="9" fill="${wire}">${mark}</text>`);
      parts.push(`<text x="28" y="${base}" fill="${text}">${escaped(name)}</text>`,
        `<text x="${box.w - 8}" y="${base}" text-anchor="end" fill="${muted}">${escaped(masked ? "masked" : type)}</text>`);
    });
    parts.push("</g>");
  });
  return `${parts.join("\n")}\n</svg>\n`;
}

/** The picture in pixels, and by how much it was made smaller: a browser draws only so many.
 * @param {string} svg @param {number} w @param {number} h @returns {Promise<{ file: Blob, scale: number }>} */
async function pngOf(svg, w, h) {
  const scale = Math.min(2, MOST_SIDE / w, MOST_SIDE / h, Math.sqrt(MOST_PIXELS / w / h));
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.max(1, Math.floor(w * scale)), Math.max(1, Math.floor(h * scale))];
    canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const file = await new Promise((done) => canvas.toBlob(done, "image/png"));
    if (!(file instanceof Blob)) throw new Error("The browser could not draw a picture of this size: save it as SVG.");
    return { file, scale };
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** @param {Model} model @param {Spot[]} spots */
function sizeOf(model, spots) {
  const { left, top, right, bottom } = boundsOf(model, spots);
  return [right - left + 2 * MARGIN, bottom - top + 2 * MARGIN];
}

/** The tables and keys in Mermaid's words, with all columns that are shown. @param {Model} model */
export function mermaidOf({ boxes, wires }) {
  const several = new Set(boxes.map(({ facts }) => facts.schema)).size > 1;
  /** @param {import("./diagram_contract.js").Box} box */
  const nameOf = ({ facts }) => quoted(several ? `${facts.schema}.${facts.name}` : facts.name);
  const lines = ["erDiagram"];
  for (const box of boxes) {
    const columns = box.facts.columns.filter(({ name }) => box.lineOf.has(name));
    if (!columns.length) {
      lines.push(`  ${nameOf(box)}`);
      continue;
    }
    lines.push(`  ${nameOf(box)} {`);
    for (const { name, type, key, refers } of columns) {
      const marks = [key ? "PK" : "", refers ? "FK" : ""].filter(Boolean).join(", ");
      const word = wordOf(name);
      lines.push(`    ${[wordOf(type), word, marks, word === name ? "" : quoted(name)].filter(Boolean).join(" ")}`);
    }
    lines.push("  }");
  }
  for (const { facts, from, to } of wires) {
    const how = facts.guessed ? "||..o{" : "||--o{";
    const said = facts.columns.join(", ") + (facts.guessed && !facts.confirmed ? " (guessed)" : "");
    lines.push(`  ${nameOf(boxes[to])} ${how} ${nameOf(boxes[from])} : ${quoted(said)}`);
  }
  return `${lines.join("\n")}\n`;
}

/** @param {string} text */
const quoted = (text) => `"${text.replace(/"/g, "'").replace(/[\s\p{C}%\\]+/gu, " ")}"`;

/** A word that Mermaid takes for a type or a column. @param {string} text */
function wordOf(text) {
  const word = text.replace(/[^\p{L}\p{N}_()[\]-]+/gu, "_").replace(/^[^\p{L}_]/u, (sign) => `_${sign}`);
  return word.replace(/_+$/, "") || "_";
}

/** @param {import("./diagram_state.js").DiagramState} state @param {import("./data_contract.js").DataTab} tab
 * @param {"svg" | "png" | "mermaid"} format */
export async function saveDiagram(state, tab, format) {
  const shown = state.shown.peek();
  if (!shown) return;
  const { model, spots } = shown;
  const name = `diagram-${(tab.table ?? tab.schema ?? tab.source).replace(/[^\p{L}\p{N}_-]+/gu, "_")}`;
  try {
    if (format === "mermaid") keepFile(new Blob([mermaidOf(model)], { type: "text/plain" }), `${name}.mmd`);
    else if (format === "svg") keepFile(new Blob([svgOf(model, spots)], { type: "image/svg+xml" }), `${name}.svg`);
    else {
      const [w, h] = sizeOf(model, spots);
      const { file, scale } = await pngOf(svgOf(model, spots), w, h);
      keepFile(file, `${name}.png`);
      if (scale < 1) state.note.value = `The PNG has ${Math.round(scale * 100)} % of the drawing's size: browsers draw no larger one. The SVG is whole.`;
    }
    say("The file is saved.");
  } catch (error) {
    state.error.value = error instanceof Error ? error.message : String(error);
  }
}

/** Have the browser keep a file. @param {Blob} file @param {string} name */
function keepFile(file, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
