/** The bar of tabs: each with its source's colour and name, and a mark where an agent opened it. */

import { sourceChip } from "./card.js";
import { data } from "./data_state.js";
import { each, h } from "./dom.js";
import { icon } from "./icons.js";
import { effect } from "./signals.js";
import { colorClass, isolated, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */

export function tabBar() {
  const bar = h("div", {
    class: "tabs", role: "tablist", "aria-label": "Open tabs",
    onkeydown: (/** @type {KeyboardEvent} */ event) => press(event),
  }, each(() => data.tabs.value, ({ id }) => id, tabView));
  effect(() => {
    const id = data.active.value;
    setTimeout(() => document.getElementById(`tab-${id}`)?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  });
  return bar;
}

/** @param {import("./signals.js").Signal<DataTab>} tab */
function tabView(tab) {
  const { id } = tab.peek();
  const active = () => data.active.value === id;
  const source = () => data.source(tab.value.source);
  return h("div", {
    class: () => `tab ${colorClass(source())}`, role: "tab", id: `tab-${id}`, "aria-selected": () => String(active()),
    "aria-controls": () => (active() ? `panel-${id}` : null),
    "aria-keyshortcuts": "Delete Alt+W",
    tabindex: () => (active() || (!data.tabs.value.some((each) => each.id === data.active.value) &&
      data.tabs.value[0]?.id === id) ? "0" : "-1"),
    title: () => [tab.value.source, tab.value.schema, tab.value.title].filter(Boolean).join(" · "),
    onclick: () => data.show(id),
    onauxclick: (/** @type {MouseEvent} */ event) => event.button === 1 && void data.close(id),
  },
    h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", { class: "tab-text" },
      h("span", { class: "tab-title" }, () => isolated(tab.value.title)),
      h("span", { class: "tab-source" }, () => [source().group ? [isolated(source().group ?? ""), " / "] : null,
        isolated(tab.value.source)])),
    () => (tab.value.opened_by
      ? h("span", { class: "by-agent", title: `Opened by ${tab.value.opened_by}` }, icon("agent"),
        h("span", { class: "sr" }, "opened by ", visible(tab.value.opened_by))) : null),
    h("span", {
      class: "tab-close", "aria-hidden": "true", title: "Close (Alt W)",
      onclick: (/** @type {Event} */ event) => {
        event.stopPropagation();
        void data.close(id);
      },
    }, icon("close")));
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const tabs = data.tabs.peek();
  const at = tabs.findIndex(({ id }) => `tab-${id}` === document.activeElement?.id);
  if (at < 0) return;
  const to = { ArrowLeft: (at - 1 + tabs.length) % tabs.length, ArrowRight: (at + 1) % tabs.length,
    Home: 0, End: tabs.length - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    data.show(tabs[to].id);
    document.getElementById(`tab-${tabs[to].id}`)?.focus();
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    document.getElementById(`panel-${tabs[at].id}`)?.focus();
  } else if (event.key === "Delete") {
    event.preventDefault();
    void data.close(tabs[at].id).then(() =>
      document.getElementById(`tab-${data.active.peek()}`)?.focus());
  }
}

/** Go on in the text of a query. @param {string} id */
function write(id) {
  const text = document.querySelector(`#${CSS.escape(`panel-${id}`)} textarea`);
  if (text instanceof HTMLElement) text.focus();
}

/** A query on a source that is chosen. */
export function newQueryButton() {
  const menu = h("div", { class: "menu query-menu", popover: "auto", id: "new-query" },
    h("p", { class: "note" }, "New query on"),
    () => data.sources.value.filter(({ may }) => may.read).map((source) => h("button", {
      class: "quiet",
      onclick: () => {
        menu.hidePopover();
        void data.openQuery({ source: source.name, database: null, schema: null }).then((tab) => tab && write(tab.id));
      },
    }, sourceChip(source))));
  return h("div", { class: "new-query" },
    h("button", { class: "small", popovertarget: "new-query" }, icon("add"), h("span", { class: "sr" }, "New "),
      h("span", { class: "wide-only" }, "Query")), menu);
}
