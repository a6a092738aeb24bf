/** Ctrl K: go to a page or a question by a few letters. */

import { offered } from "./actions.js";
import { get, query } from "./api.js";
import { each, h } from "./dom.js";
import { computed, effect, onEnd, root, signal } from "./signals.js";
import { cards, go, theme } from "./state.js";
import { isolated } from "./text.js";

/** @typedef {{ id: string, label: string, hint: string, run: () => void }} Entry */

/** @returns {Entry[]} */
function entries() {
  const pages = [["inbox", "Inbox"], ["activity", "Activity"], ["data", "Data"], ["access", "Access"],
    ["now", "Now"]];
  const looks = /** @type {const} */ (["auto", "light", "dark"]);
  return [
    ...[...cards.pending, ...cards.recent].map((card) => ({
      id: `card-${card.id}`, label: card.sentence,
      hint: card.state === "pending" ? "waits" : "answered",
      run: () => go(`#/inbox/${encodeURIComponent(card.id)}`),
    })),
    ...pages.map(([page, label]) => ({
      id: `page-${page}`, label, hint: "page", run: () => go(`#/${page}`),
    })),
    ...offered().map(({ label, keys, run }, at) => ({ id: `action-${at}`, label, hint: keys ?? "action", run })),
    ...looks.map((look) => ({
      id: `look-${look}`, label: look === "auto" ? "Look: as the system" : `Look: ${look}`,
      hint: "look", run: () => void (theme.value = look),
    })),
  ];
}

const WAIT_MS = 150;
const MOST_TABLES = 8;
const MOST_OWN = 20;

/** Tables of all sources whose name has what is typed, a moment after it was typed; `now` waits for them.
 * @param {import("./signals.js").Signal<string>} typed */
function tables(typed) {
  const found = signal(/** @type {Entry[]} */ ([]));
  let now = () => Promise.resolve();
  effect(() => {
    const text = typed.value.trim();
    const pending = new AbortController();
    /** @type {Promise<void> | null} */
    let asked = null;
    const load = () => (asked ??= text.length < 2 ? Promise.resolve() : get(
      `data/search?${query({ q: text, limit: 3 * MOST_TABLES })}`, pending.signal,
    ).then(({ matches }) => void (found.value = matches.map(tableEntry)), () => {}));
    const timer = setTimeout(load, WAIT_MS);
    now = load;
    found.value = [];
    onEnd(() => (clearTimeout(timer), pending.abort()));
  });
  return { found, now: () => now() };
}

/** @param {import("./data_contract.js").Match} match @returns {Entry} */
const tableEntry = ({ source, database, schema, table, column }) => ({
  id: `table-${encodeURIComponent(JSON.stringify([source, database, schema, table, column]))}`, hint: `${column ? `has ${column}, ` : ""}on ${source}`, label: table,
  run: () => go(`#/data?${query({ source, database, schema, table })}`),
});

export function openPalette() {
  if (document.querySelector("dialog[open]")) return;
  const [dialog, stop] = root(() => {
    const typed = signal("");
    const at = signal(0);
    const all = entries();
    const held = tables(typed);
    const found = computed(() => {
      const words = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
      const own = all.filter(({ label, hint }) =>
        words.every((word) => `${label} ${hint}`.toLowerCase().includes(word)));
      return [...own.slice(0, MOST_OWN), ...held.found.value.slice(0, MOST_TABLES)];
    });
    const current = computed(() => found.value[Math.min(at.value, found.value.length - 1)]);
    /** @param {Entry | undefined} entry */
    const choose = (entry) => {
      if (!entry) return;
      close();
      entry.run();
    };
    /** Choose what is marked; where it is a table, once it is found by what was typed. */
    const accept = async () => {
      const text = typed.peek();
      if (!current.peek()) await held.now();
      if (typed.peek() === text && document.querySelector("dialog.palette[open]")) choose(current.peek());
    };
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) at.value = Math.min(Math.max(at.peek() + step, 0), found.peek().length - 1);
      else if (event.key === "Enter") void accept();
      else return;
      event.preventDefault();
    };
    return h("dialog", { class: "palette", "aria-label": "Go to", oncancel: () => close() },
      h("input", {
        type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list",
        "aria-label": "Go to a page, a question or a table, or do something", "aria-autocomplete": "list", placeholder: "Go to, or do …",
        autocomplete: "off", spellcheck: "false",
        "aria-activedescendant": () => current.value?.id ?? null,
        oninput: (/** @type {Event} */ event) => {
          typed.value = /** @type {HTMLInputElement} */ (event.target).value;
          at.value = 0;
        },
        onkeydown: press,
      }),
      h("ul", { role: "listbox", id: "palette-list", "aria-label": "Found" },
        each(() => found.value, (entry) => entry.id, (entry) => h("li", {
          role: "option", id: entry.peek().id,
          "aria-selected": () => String(current.value?.id === entry.value.id),
          onclick: () => choose(entry.peek()),
        }, isolated(entry.peek().label), h("span", { class: "kind" }, entry.peek().hint)))),
      () => (found.value.length ? null : h("p", { class: "note" }, "Nothing found.")));
  });
  const close = () => {
    dialog.close();
    dialog.remove();
    stop();
  };
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("input")?.focus();
}
