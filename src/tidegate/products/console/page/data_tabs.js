/** The bar of tabs: each with its source's colour and name, and a mark where an agent opened it. */

import { sourceChip } from "./card.js";
import { contextMenu } from "./context_menu.js";
import { data } from "./data_state.js";
import { ask } from "./dialogs.js";
import { each, h } from "./dom.js";
import { icon } from "./icons.js";
import { effect } from "./signals.js";
import { tabName } from "./tab_names.js";
import { colorClass, isolated, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */

const DRAG = 6;
const SHOWN_TEXT = 300;

/** Ask for another name of a query tab. @param {string} id */
export async function renameTab(id) {
  const tab = data.tabs.peek().find((each) => each.id === id);
  if (tab?.kind !== "query") return;
  const input = h("input", { type: "text", id: "tab-name", maxlength: "200", value: tabName(tab), autocomplete: "off", spellcheck: "false" });
  const title = await ask({ title: "Name of the tab", action: "Rename", read: () => input.value.trim() || null,
    body: [h("label", { for: "tab-name" }, "Name"), input] });
  if (title) await data.rename(id, title);
  document.getElementById(`tab-${id}`)?.focus();
}

/** @param {DataTab} tab @returns {import("./context_menu.js").MenuItem[]} */
function menuOf({ id, kind }) {
  const tabs = data.tabs.peek();
  const at = tabs.findIndex((each) => each.id === id);
  /** @param {DataTab[]} closed */
  const close = (closed) => () => closed.forEach((each) => void data.close(each.id));
  return [
    ...(kind === "query" ? [{ label: "Rename …", keys: "F2", run: () => void renameTab(id) }] : []),
    { label: "Move left", keys: "Alt Shift PgUp", disabled: at === 0, run: () => void data.moveBy(id, -1) },
    { label: "Move right", keys: "Alt Shift PgDn", disabled: at === tabs.length - 1, run: () => void data.moveBy(id, 1) },
    null,
    { label: "Close", keys: "Alt W", run: () => void data.close(id) },
    { label: "Close the others", disabled: tabs.length < 2, run: close(tabs.filter((each) => each.id !== id)) },
    { label: "Close those to the right", disabled: at === tabs.length - 1, run: close(tabs.slice(at + 1)) },
  ];
}

/** Move a tab by the pointer: it goes where it is let go. @param {PointerEvent} event @param {string} id */
function drag(event, id) {
  const node = /** @type {HTMLElement} */ (event.currentTarget);
  if (event.button !== 0 || event.pointerType === "touch") return;
  const ended = new AbortController();
  const { signal } = ended;
  let moved = false;
  /** @param {PointerEvent} moving */
  const place = (moving) => [...(node.parentElement?.querySelectorAll(".tab") ?? [])]
    .filter((each) => each !== node).filter((each) => {
      const { left, width } = each.getBoundingClientRect();
      return moving.clientX > left + width / 2;
    }).length;
  document.addEventListener("pointermove", (moving) => {
    if (!moved && Math.abs(moving.clientX - event.clientX) < DRAG) return;
    moved = true;
    node.classList.add("dragged");
    node.style.transform = `translateX(${moving.clientX - event.clientX}px)`;
  }, { signal });
  /** @param {PointerEvent | null} last */
  const end = (last) => {
    ended.abort();
    node.classList.remove("dragged");
    node.style.transform = "";
    if (last && moved) void data.move(id, place(last));
  };
  document.addEventListener("pointerup", end, { signal });
  document.addEventListener("pointercancel", () => end(null), { signal });
}

export function tabBar() {
  const bar = h("div", {
    class: "tabs", role: "tablist", "aria-label": "Open tabs",
    onkeydown: (/** @type {KeyboardEvent} */ event) => press(event),
  }, each(() => data.tabs.value, ({ id }) => id, tabView));
  contextMenu(bar, (event) => {
    const at = /** @type {HTMLElement | null} */ ((/** @type {Element | null} */ (event?.target) ?? document.activeElement)?.closest(".tab"));
    const tab = data.tabs.peek().find(({ id }) => `tab-${id}` === at?.id);
    return tab ? { label: `Tab ${tabName(tab)}`, items: menuOf(tab), at } : null;
  });
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
    "aria-keyshortcuts": "Delete Alt+W F2",
    tabindex: () => (active() || (!data.tabs.value.some((each) => each.id === data.active.value) &&
      data.tabs.value[0]?.id === id) ? "0" : "-1"),
    title: () => [tab.value.source, tab.value.schema, tabName(tab.value)].filter(Boolean).join(" · ") +
      (tab.value.text?.trim() ? `\n${tab.value.text.trim().slice(0, SHOWN_TEXT)}` : ""),
    onclick: () => data.show(id),
    ondblclick: () => void renameTab(id),
    onpointerdown: (/** @type {PointerEvent} */ event) => drag(event, id),
    onauxclick: (/** @type {MouseEvent} */ event) => event.button === 1 && void data.close(id),
  },
    h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", { class: "tab-text" },
      h("span", { class: "tab-title" }, () => isolated(tabName(tab.value))),
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
  } else if (event.key === "F2") {
    event.preventDefault();
    void renameTab(tabs[at].id);
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

/** A new query, with the focus in its text.
 * @param {string} source @param {{ database: string | null, schema: string | null }} [place] */
export function newQuery(source, place = { database: null, schema: null }) {
  void data.openQuery({ source, ...place }).then((tab) => tab && write(tab.id));
}

/** A query on a source that is chosen. */
export function newQueryButton() {
  const menu = h("div", { class: "menu query-menu", popover: "auto", id: "new-query" },
    h("p", { class: "note" }, "New query on"),
    () => data.sources.value.filter(({ may }) => may.read).map((source) => h("button", {
      class: "quiet",
      onclick: () => {
        menu.hidePopover();
        newQuery(source.name);
      },
    }, sourceChip(source))));
  return h("div", { class: "new-query" },
    h("button", { class: "small", popovertarget: "new-query" }, icon("add"), h("span", { class: "sr" }, "New "),
      h("span", { class: "wide-only" }, "Query")), menu);
}

/** The list of saved queries, which is loaded when it is wanted. */
export const showSaved = () => void import("./saved_list.js").then((loaded) => loaded.showSaved());

export const savedButton = () => h("div", { class: "new-query" },
  h("button", { class: "small", title: "Saved queries (Alt O)", "aria-label": "Saved queries", onclick: showSaved },
    icon("save"), h("span", { class: "wide-only" }, "Saved")));
