/** Data: the tree of sources and tables, the tabs, and the tab that is in front. */

import { offer } from "./actions.js";
import { sourceChip } from "./card.js";
import { data } from "./data_state.js";
import { newQuery, newQueryButton, renameTab, savedButton, showSaved, tabBar } from "./data_tabs.js";
import { dataTree } from "./data_tree.js";
import { dialogIsOpen } from "./dialogs.js";
import { h, loadStyle } from "./dom.js";
import { icon } from "./icons.js";
import { acceptDrops, chooseFile, importButton } from "./import_start.js";
import { isLater, laterTab } from "./later_tab.js";
import { readLink } from "./links.js";
import { newTab, newTabButton } from "./new_tab.js";
import { queryTab } from "./query_tab.js";
import { saved } from "./saved_state.js";
import { computed, effect, onEnd, root, signal } from "./signals.js";
import { listen, route, tabNotice } from "./state.js";
import { tablePage } from "./table_page.js";
import { tableState } from "./table_state.js";
import { prose, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./data_contract.js").TabEvent} TabEvent */

const AT_WORK_MS = 3_000;
const KEPT_TABLES = 6;

/** The view, once its styles are there. @returns {Promise<() => Node>} */
export async function dataView() {
  await Promise.all([loadStyle("data.css"), loadStyle("query.css")]);
  return view;
}

function view() {
  const drawer = signal(false);
  void data.load();
  onEnd(listen("refreshed", () => void data.load()));
  const area = h("div", { class: "data-area" });
  acceptDrops(area);
  const usedAt = watchUse(area);
  onEnd(listen("tab", (/** @type {TabEvent} */ event) => receive(event, usedAt)));
  followAddress();
  panels(area);
  keys();
  offer(actions);
  const tree = dataTree(() => (drawer.value = false));
  effect(() => {
    void data.active.value;
    drawer.value = false;
  });
  return h("div", {
    class: () => `data ${drawer.value ? "has-drawer" : ""}`,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape" && drawer.peek()) drawer.value = false;
    },
  },
    h("h1", { class: "sr" }, "Data"),
    h("section", { class: "data-side", "aria-label": "Sources and tables" }, tree),
    h("div", { class: "drawer-cover", onclick: () => (drawer.value = false) }),
    h("section", { class: "data-main", "aria-label": "Tabs" },
      h("div", { class: "tab-line" },
        h("button", {
          class: "open-drawer small", "aria-expanded": () => String(drawer.value),
          onclick: () => {
            drawer.value = !drawer.peek();
            if (drawer.peek()) document.getElementById("tree-search")?.focus();
          },
        }, icon("data"), "Tables"),
        tabBar(), newQueryButton(), newTabButton(), savedButton(), importButton()),
      () => (data.error.value
        ? h("p", { class: "error", role: "alert" }, prose(data.error.value), " ",
          h("button", { class: "small", onclick: () => void data.load() }, "Try again")) : null),
      area,
      () => (data.loaded.value && !data.tabs.value.some(({ id }) => id === data.active.value) ? nothing() : null)));
}

/** When a person last did something in the tab that is shown. @param {HTMLElement} area */
function watchUse(area) {
  let at = -Infinity;
  for (const name of ["keydown", "pointerdown", "input"]) {
    area.addEventListener(name, () => (at = performance.now()), { capture: true });
  }
  return () => at;
}

/** What an agent or another page did with a tab. An agent's tab is shown at once only where it takes
 * nothing out of someone's hands. @param {TabEvent} event @param {() => number} usedAt */
function receive(event, usedAt) {
  const { tab, action, by } = event;
  if (action === "closed") {
    data.drop(tab.id);
    return;
  }
  data.put(tab);
  if (!by || action === "changed" || data.active.peek() === tab.id) return;
  const shown = data.active.peek();
  const busy = data.isEdited(shown) || performance.now() - usedAt() < AT_WORK_MS || dialogIsOpen();
  if (route.peek().page !== "data" || busy) tabNotice.value = event;
  else data.show(tab.id);
}

/** @param {import("./links.js").Link} link */
async function openLink(link) {
  if ("query" in link) await saved.open(link.query, { replace: true });
  else if ("table" in link) {
    const { table } = link;
    await data.openTable(table.place, table.table, { replace: true, before: ({ id }) => tableState(id).follow(table) });
  } else data.error.value = "This link is broken, and nothing of it was opened.";
}

/** The address names a tab, or a table or a saved query to open, or nothing: the last tab then. */
function followAddress() {
  effect(() => {
    const { page, query } = route.value;
    if (page !== "data" || !data.loaded.value) return;
    const link = readLink(query);
    if (link) queueMicrotask(() => void openLink(link));
    else if (!query.get("tab")) {
      const { last } = data;
      if (last) queueMicrotask(() => data.show(last.id, { replace: true }));
    }
  });
  const known = computed(() => (data.tabs.value.some(({ id }) => id === data.active.value) ? data.active.value : ""));
  effect(() => {
    const id = known.value;
    if (!id) return;
    if (tabNotice.peek()?.tab.id === id) tabNotice.value = null;
    if (!data.tabs.peek().find((each) => each.id === id)?.is_active) void data.focus(id);
  });
}

/** Each tab that was shown keeps what it shows; only the one in front is seen.
 * @param {HTMLElement} area */
function panels(area) {
  /** @type {Map<string, { node: HTMLElement, stop: () => void, kind: string }>} the last shown at the end */
  const kept = new Map();
  /** @param {string} id */
  const end = (id) => {
    const panel = kept.get(id);
    kept.delete(id);
    panel?.node.remove();
    panel?.stop();
  };
  // A table that was filled or changed by a form is read again where it is open.
  const turn = signal(0);
  onEnd(listen("table", ({ source, schema, table }) => {
    for (const tab of data.tabs.peek()) {
      const same = tab.kind === "table" && tab.source === source && tab.table === table;
      if (same && (!schema || !tab.schema || schema === tab.schema)) end(tab.id);
    }
    turn.value = turn.peek() + 1;
  }));
  effect(() => {
    void turn.value;
    const ids = new Set(data.tabs.value.map(({ id }) => id));
    for (const id of [...kept.keys()]) if (!ids.has(id)) end(id);
    const active = data.active.value;
    if (ids.has(active)) {
      const panel = kept.get(active) ?? make(active);
      kept.delete(active);
      kept.set(active, panel);
      if (!panel.node.isConnected) area.append(panel.node);
    }
    for (const [id, { node }] of kept) node.hidden = id !== active;
    const tables = [...kept].filter(([, { kind }]) => kind === "table" || kind === "erDiagram");
    for (const [id] of tables.slice(0, -KEPT_TABLES)) end(id);
  });
  onEnd(() => [...kept.keys()].forEach(end));
}

/** @param {string} id */
function make(id) {
  const first = /** @type {DataTab} */ (data.tabs.peek().find((each) => each.id === id));
  const [node, stop] = root(() => {
    const tab = computed(() => data.tab(id) ?? first);
    return h("div", {
      class: "tab-panel", role: "tabpanel", id: `panel-${id}`, tabindex: "-1",
      "aria-labelledby": `tab-${id}`,
    }, first.kind === "table" ? tablePage(tab) : isLater(first.kind) ? laterTab(tab) : queryTab(tab));
  });
  return { node, stop, kind: first.kind };
}

/** Keys of the page: they are free in browsers, and work wherever the focus is. */
function keys() {
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (dialogIsOpen() || event.isComposing) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === "/" && !event.ctrlKey && !event.altKey && !event.metaKey) {
      if (target.closest("input, textarea, select, [contenteditable]")) return;
      event.preventDefault();
      document.getElementById("tree-search")?.focus();
      return;
    }
    if (!event.altKey || event.ctrlKey || event.metaKey) return;
    const active = data.active.peek();
    const work = { KeyO: showSaved, KeyW: event.shiftKey ? () => data.reopen() : () => data.close(active),
      PageDown: () => (event.shiftKey ? data.moveBy(active, 1) : step(1)),
      PageUp: () => (event.shiftKey ? data.moveBy(active, -1) : step(-1)) }[event.code];
    if (!work || (event.code === "KeyW" && !event.shiftKey && !data.active.peek())) return;
    event.preventDefault();
    void work();
  };
  document.addEventListener("keydown", press);
  onEnd(() => document.removeEventListener("keydown", press));
}

/** What Ctrl K finds while Data is in front. @returns {import("./actions.js").Action[]} */
function actions() {
  const tab = data.tabs.peek().find(({ id }) => id === data.active.peek());
  return [
    ...data.sources.peek().filter(({ may }) => may.read).map((source) =>
      ({ label: `New query on ${source.name}`, run: () => newQuery(source.name) })),
    { label: "Saved queries", keys: "Alt O", run: showSaved },
    { label: "New tab of another kind: diagram, server, terminal, table by form …", run: () => void newTab() },
    { label: "Import a file …", run: () => chooseFile() },
    { label: "Search the tables of all sources", keys: "/", run: () => document.getElementById("tree-search")?.focus() },
    { label: "Open the tab again that was closed last", keys: "Alt Shift W", run: () => void data.reopen() },
    ...(tab ? [
      ...(tab.kind === "query" ? [{ label: "Rename the tab", keys: "F2", run: () => void renameTab(tab.id) }] : []),
      { label: "Move the tab left", keys: "Alt Shift PgUp", run: () => void data.moveBy(tab.id, -1) },
      { label: "Move the tab right", keys: "Alt Shift PgDn", run: () => void data.moveBy(tab.id, 1) },
      { label: "Close the tab", keys: "Alt W", run: () => void data.close(tab.id) },
    ] : []),
  ];
}

/** @param {number} by */
function step(by) {
  const tabs = data.tabs.peek();
  if (!tabs.length) return;
  const at = tabs.findIndex(({ id }) => id === data.active.peek());
  data.show(tabs[(at + by + tabs.length) % tabs.length].id);
}

function nothing() {
  const sources = data.sources.value;
  return h("div", { class: "empty" },
    h("h2", {}, sources.length ? "Open a table" : "There is no source yet"),
    sources.length
      ? [h("p", { class: "lead" }, "Choose one in the tree, or search all sources: press ", h("kbd", {}, "/"), "."),
        h("ul", { class: "plain" }, sources.map((source) => h("li", {}, sourceChip(source), " ",
          h("span", { class: "note" }, visible(source.engine), source.message ? [": ", visible(source.message)] : null))))]
      : [h("p", { class: "lead" }, "An admin of all sources adds one on the page ", h("a", { href: "#/access/sources" }, "Access"), ", under Sources; or where the server runs:"),
        h("p", {}, h("code", {}, "tidegate source add shop sqlite:////data/shop.db"))]);
}
