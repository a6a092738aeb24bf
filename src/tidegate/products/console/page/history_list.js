/** The operator's own statements, to be found and put into a tab. */

import { errorText, get, query } from "./api.js";
import { each, h } from "./dom.js";
import { root, signal } from "./signals.js";
import { counted, isolated, number, prose, timeNode, visible } from "./text.js";

/** @typedef {import("./query_contract.js").HistoryEntry} HistoryEntry */

const WAIT_MS = 150;
const LONGEST = 400;

/** Choose one. @param {string} source whose statements come first @returns {Promise<HistoryEntry | null>} */
export function chooseFromHistory(source) {
  return new Promise((resolve) => {
    const [dialog, stop] = root(() => build(source, (entry) => {
      dialog.close();
      dialog.remove();
      stop();
      resolve(entry);
    }));
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("input")?.focus();
  });
}

/** @param {string} source @param {(entry: HistoryEntry | null) => void} leave */
function build(source, leave) {
  const entries = signal(/** @type {HistoryEntry[]} */ ([]));
  const next = signal(/** @type {string | null} */ (null));
  const at = signal(0);
  const error = signal("");
  const loaded = signal(false);
  const own = signal(true);
  let asked = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** The text that the statements are asked for by. */
  let sought = "";
  let loading = Promise.resolve();
  /** @param {string | null} [before] */
  const load = (before = null) => (loading = read(before));
  /** @param {string | null} before */
  const read = async (before) => {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    sought = input.value.trim();
    try {
      const found = await get(`data/history?${query({ q: sought, source: own.peek() ? source : "", limit: 50, before })}`, signal);
      entries.value = before ? [...entries.peek(), ...found.entries] : found.entries;
      next.value = found.next;
      if (!before) at.value = 0;
      error.value = "";
      loaded.value = true;
    } catch (caught) {
      if (!signal.aborted) error.value = errorText(caught);
    }
  };
  /** @param {number} index */
  const optionId = (index) => `statement-${index}`;
  /** Choose the statement that is marked, once they are those of what was typed. */
  const accept = async () => {
    if (sought !== input.value.trim()) {
      clearTimeout(timer);
      void load();
    }
    await loading;
    const entry = entries.peek()[at.peek()];
    if (entry && input.isConnected && !error.peek() && sought === input.value.trim()) leave(entry);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5 }[event.key];
    if (step) at.value = Math.min(Math.max(at.peek() + step, 0), entries.peek().length - 1);
    else if (event.key === "Enter") void accept();
    else return;
    event.preventDefault();
    document.getElementById(optionId(at.peek()))?.scrollIntoView({ block: "nearest" });
  };
  const input = h("input", {
    type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "history-list", "aria-autocomplete": "list",
    "aria-label": "Search your statements", placeholder: "Search your statements", autocomplete: "off", spellcheck: "false",
    "aria-activedescendant": () => (entries.value.length ? optionId(at.value) : null),
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => void load(), WAIT_MS);
    },
    onkeydown: press,
  });
  void load();
  return h("dialog", { class: "history", "aria-label": "Your statements",
    oncancel: (/** @type {Event} */ event) => (event.preventDefault(), leave(null)) },
    h("div", { class: "history-head" }, input,
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: true, onchange: (/** @type {Event} */ event) => {
        own.value = /** @type {HTMLInputElement} */ (event.target).checked;
        void load();
      } }), h("span", {}, "of ", isolated(source), " alone"))),
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    h("ul", { role: "listbox", id: "history-list", "aria-label": "Statements" },
      each(() => entries.value.map((entry, index) => ({ entry, index })), ({ entry, index }) => `${index} ${entry.at}`,
        (item) => option(item.peek().entry, item.peek().index))),
    () => (loaded.value && !entries.value.length ? h("p", { class: "note" }, "Nothing found.") : null),
    h("div", { class: "dialog-actions" },
      () => (next.value ? h("button", { class: "small", onclick: () => void load(next.peek()) }, "Older") : null),
      h("button", { class: "quiet", onclick: () => leave(null) }, "Close")));

  /** @param {HistoryEntry} entry @param {number} index */
  function option(entry, index) {
    const short = entry.statement.length > LONGEST ? `${entry.statement.slice(0, LONGEST)} …` : entry.statement;
    return h("li", { role: "option", id: optionId(index), "aria-selected": () => String(at.value === index),
      onclick: () => leave(entry) },
      h("code", { dir: "ltr" }, visible(short)),
      h("span", { class: "meta" }, timeNode(entry.at), isolated(entry.source),
        entry.ok ? (entry.rows === null ? null : h("span", {}, counted(entry.rows, "row"))) : h("span", { class: "bad" }, "failed"),
        entry.ms === null ? null : h("span", {}, `${number(Math.round(entry.ms))} ms`)));
  }
}
