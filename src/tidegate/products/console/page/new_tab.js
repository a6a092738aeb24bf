/** A new tab that is neither a query nor a table: which kind, and of what. */

import { errorText, get, query } from "./api.js";
import { data } from "./data_state.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { effect, root, signal } from "./signals.js";
import { visible } from "./text.js";

/** @typedef {import("./data_contract.js").SchemaInfo} SchemaInfo */
/** @typedef {import("./data_contract.js").TabKind} TabKind */

const KINDS = /** @type {[TabKind, string][]} */ ([
  ["erDiagram", "Diagram: the tables of a schema and their keys"],
  ["serverDashboard", "Server: sessions, slow statements, sizes, memory"],
  ["terminal", "Terminal: a transcript in the source's own language"],
  ["createTable", "New table, by a form"],
]);

export function newTabButton() {
  return h("div", { class: "new-query" }, h("button", {
    class: "small", title: "New tab: diagram, server, terminal, table by form", "aria-label": "New tab of another kind", onclick: () => void newTab(),
  }, icon("diagram")));
}

export async function newTab() {
  const active = data.tab(data.active.peek());
  const source = signal(active?.source ?? data.sources.peek()[0]?.name ?? "");
  const kind = signal(KINDS[0][0]);
  const schemas = signal(/** @type {SchemaInfo[]} */ ([]));
  const error = signal("");
  const [body, stop] = root(() => {
    effect(() => {
      const name = source.value;
      if (!name) return;
      schemas.value = [];
      get(`data/schemas?${query({ source: name })}`).then((found) => {
        if (source.peek() !== name) return;
        schemas.value = found.schemas;
        error.value = "";
      }, (caught) => (error.value = errorText(caught)));
    });
    return [
      h("label", { for: "tab-kind" }, "Kind"),
      h("select", { id: "tab-kind", onchange: (/** @type {Event} */ event) => (kind.value = valueOf(event)) },
        KINDS.map(([each, label]) => h("option", { value: each }, label))),
      h("label", { for: "tab-on" }, "Source"),
      h("select", { id: "tab-on", onchange: (/** @type {Event} */ event) => (source.value = valueOf(event)) },
        data.sources.peek().filter(({ may }) => may.read).map(({ name }) => h("option", { value: name, selected: name === source.peek() }, visible(name)))),
      () => [
        h("label", { for: "tab-schema" }, "Schema"),
        h("select", { id: "tab-schema" }, schemas.value.map(({ name, current, tables }) => h("option", { value: name, selected: current },
          visible(name), tables === null ? "" : ` (${tables})`)))],
      () => (error.value ? h("p", { class: "error", role: "alert" }, error.value) : null),
    ];
  });
  const wanted = await ask({
    title: "New tab", action: "Open", body,
    read: () => {
      const schema = /** @type {HTMLSelectElement | null} */ (document.getElementById("tab-schema"));
      const found = schemas.peek().find(({ name }) => name === schema?.value);
      return source.peek() ? { source: source.peek(), database: found?.database ?? null, schema: found?.name ?? null } : null;
    },
  });
  stop();
  if (!wanted) return;
  // A server has no schema to be called by.
  const tab = await data.openView(kind.peek(), kind.peek() === "serverDashboard" ? { ...wanted, schema: null } : wanted);
  if (tab) beginTab(tab.id);
}

/** Where a new tab is written in: its first field, if its module is there; else that takes the focus of the panel.
 * @param {string} id of a tab */
export function beginTab(id) {
  const panel = document.getElementById(`panel-${id}`);
  const field = /** @type {HTMLElement | null | undefined} */ (panel?.querySelector(".terminal-input, .form-table"));
  (field ?? panel)?.focus();
}

/** @param {Event} event */
const valueOf = (event) => /** @type {any} */ (event.target).value;
