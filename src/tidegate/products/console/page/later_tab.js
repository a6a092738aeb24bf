/** Tabs whose modules are loaded when the first one of their kind is shown. */

import { errorText } from "./api.js";
import { fetchNeeds, h, keyed } from "./dom.js";
import { signal } from "./signals.js";
import { prose } from "./text.js";

/** @typedef {import("./signals.js").Signal<import("./data_contract.js").DataTab>} TabSignal */
/** @typedef {(tab: TabSignal) => HTMLElement} View */

const VIEWS = /** @type {Partial<Record<string, [string, () => Promise<View>]>>} */ ({
  createTable: ["table_form.js", async () => (await import("./table_form.js")).tableFormTab],
  terminal: ["terminal.js", async () => (await import("./terminal.js")).terminalTab],
  serverDashboard: ["server.js", async () => (await import("./server.js")).serverTab],
  erDiagram: ["diagram.js", async () => (await import("./diagram.js")).diagramTab],
});

/** @param {string} kind */
export const isLater = (kind) => kind !== "table" && kind !== "query";

/** @param {TabSignal} tab */
export function laterTab(tab) {
  const { kind } = tab.peek();
  const view = signal(/** @type {View | null} */ (null));
  const error = signal("");
  const [file, load] = VIEWS[kind] ?? ["", null];
  const begin = () => {
    if (!load) {
      error.value = "This page does not know tabs of this kind. Load it again.";
      return;
    }
    error.value = "";
    fetchNeeds(file);
    load().then((found) => (view.value = found), (caught) => (error.value = errorText(caught)));
  };
  begin();
  return [
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value), " ",
      h("button", { class: "small", onclick: begin }, "Try again")) : null),
    keyed(() => view.value !== null, () => (view.peek() ? /** @type {View} */ (view.peek())(tab)
      : error.peek() ? null : h("p", { class: "note" }, "Loading …"))),
  ];
}
