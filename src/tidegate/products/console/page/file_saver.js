/** Files that the server makes of rows or lines, and what is said of one: that it fails, or lacks something. */

import { errorText, post } from "./api.js";
import { h } from "./dom.js";
import { signal } from "./signals.js";
import { say } from "./state.js";
import { visible } from "./text.js";

/** @typedef {{ ticket: string, name: string, rows: number, bytes: number, complete: boolean, notes: string[] }} MadeFile */

/** @param {"data" | "activity"} page whose rows are saved
 * @returns {{ save: (body: object) => Promise<void>, node: () => Node | null }} `node` shows how the last one went */
export function fileSaver(page) {
  const said = signal(/** @type {{ kind: "note" | "warning" | "error", text: string } | null} */ (null));
  /** @param {object} body */
  const save = async (body) => {
    said.value = { kind: "note", text: "The file is made …" };
    try {
      const made = /** @type {MadeFile} */ (await post(`${page}/export-ticket`, body));
      h("a", { href: `/console/api/${page}/export?ticket=${encodeURIComponent(made.ticket)}`, download: "" }).click();
      const lacks = made.notes.length > 0;
      said.value = lacks ? { kind: made.complete ? "note" : "warning", text: `${made.name}: ${made.notes.join("; ")}.` } : null;
      if (!lacks) say(`${made.name} is saved.`);
    } catch (caught) {
      said.value = { kind: "error", text: errorText(caught) };
    }
  };
  return {
    save,
    node: () => (said.value
      ? h("span", { class: `save-state ${said.value.kind}`, role: said.value.kind === "note" ? "status" : "alert" }, visible(said.value.text))
      : null),
  };
}
