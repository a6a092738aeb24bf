/** Where an import begins: by a button, or by a file that is dropped. The rest is loaded then. */

import { errorText } from "./api.js";
import { data } from "./data_state.js";
import { fetchNeeds, h } from "./dom.js";
import { icon } from "./icons.js";
import { tell } from "./state.js";

export const importButton = () => h("div", { class: "new-query" }, h("button", {
  class: "small", title: "Import a file: CSV, Excel, Parquet", "aria-label": "Import a file", onclick: () => chooseFile(),
}, icon("import")));

/** Import into the table in front, if there is one. @param {File | null} [file] */
export function chooseFile(file = null) {
  const tab = data.tab(data.active.peek());
  const source = tab?.source ?? data.sources.peek().find(({ may }) => may.read)?.name;
  if (!source) return;
  const { database = null, schema = null } = tab ?? {};
  fetchNeeds("import.js");
  import("./import.js").then(({ importFile }) => importFile({ source, database, schema }, tab?.kind === "table" ? tab.table ?? "" : "", file),
    (error) => tell(errorText(error)));
}

/** @param {HTMLElement} area */
export function acceptDrops(area) {
  const has = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") ?? false;
  const mark = (/** @type {boolean} */ on) => area.classList.toggle("is-dropping", on);
  area.addEventListener("dragover", (event) => has(event) && (event.preventDefault(), mark(true)));
  area.addEventListener("dragleave", () => mark(false));
  area.addEventListener("drop", (event) => {
    mark(false);
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    chooseFile(file);
  });
}
