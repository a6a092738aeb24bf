/** The tree of sources, schemas and tables, and the search over all of them. */

import { contextMenu } from "./context_menu.js";
import { Names } from "./data_names.js";
import { data } from "./data_state.js";
import { newQuery } from "./data_tabs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { beginTab } from "./new_tab.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { listen, perSession, tell } from "./state.js";
import { tableState } from "./table_state.js";
import { colorClass, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./data_names.js").TreeRow} TreeRow */

const ROW = matchMedia("(pointer: coarse)").matches ? 44 : 28;
const LINE = 19;
const MARGIN = 10;
const WAIT_MS = 120;
const names = perSession(() => new Names());
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** @param {() => void} onOpened called when a table was chosen */
export function dataTree(onOpened) {
  const held = names();
  const typed = signal("");
  const searching = computed(() => typed.value.trim() !== "");
  const rows = computed(() => (searching.value ? held.matches : held.rows));
  openOnlySource(held);
  onEnd(listen("names", () => held.refresh()));
  const tree = new Tree(rows, held, onOpened, () => searching.peek());
  const search = h("input", {
    type: "search", id: "tree-search", placeholder: "Search all tables", spellcheck: "false", autocomplete: "off",
    "aria-label": "Search tables and columns of all sources", "aria-keyshortcuts": "/", "aria-controls": "data-tree",
    oninput: () => (typed.value = search.value),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape" && search.value) {
        event.stopPropagation();
        search.value = "";
        typed.value = "";
      } else if (event.key === "ArrowDown") tree.enter();
      else if (event.key === "Enter") void openFirst();
      else return;
      event.preventDefault();
    },
  });
  let timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  let sought = "";
  let loading = Promise.resolve();
  /** @param {string} text */
  const find = (text) => {
    clearTimeout(timer);
    sought = text;
    loading = held.search(text);
  };
  /** Open the first that was found, once it is found by what was typed. */
  const openFirst = async () => {
    const text = typed.peek().trim();
    if (sought !== text) find(text);
    await loading;
    if (text === typed.peek().trim()) tree.openFirst();
  };
  effect(() => {
    const text = typed.value.trim();
    clearTimeout(timer);
    timer = setTimeout(() => find(text), text ? WAIT_MS : 0);
  });
  onEnd(() => clearTimeout(timer));
  return [
    h("div", { class: "tree-head" },
      h("span", { class: "search" }, icon("search"), search, h("kbd", { "aria-hidden": "true" }, "/")),
      h("button", { class: "quiet small", "aria-label": "Read the names again", title: "Read the names again",
        onclick: () => {
          held.refresh();
          void data.load();
        } }, icon("refresh"))),
    () => (held.searchError.value ? h("p", { class: "error", role: "alert" }, prose(held.searchError.value)) : null),
    h("p", { class: "sr", role: "status" }, () => (searching.value && held.found.value
      ? `${held.found.value.matches.length}${held.found.value.more ? " or more" : ""} found` : "")),
    tree.box,
  ];
}

/** A single source is open from the start. @param {Names} held */
function openOnlySource(held) {
  let done = held.open.peek().size > 0;
  effect(() => {
    const sources = data.sources.value;
    if (done || !sources.length) return;
    done = true;
    if (sources.length === 1) queueMicrotask(() => held.setOpen(`source ${sources[0].name}`, true));
  });
}

class Tree {
  #rows;
  #names;
  #opened;
  #isSearch;
  #active = signal("");
  /** @type {Map<string, { node: HTMLElement, row: TreeRow }>} */
  #kept = new Map();
  #typed = { text: "", at: 0 };
  /** Where each row begins: a note may have several lines. */
  #tops = [0];

  /** @param {import("./signals.js").Signal<TreeRow[]>} rows @param {Names} held @param {() => void} onOpened
   * @param {() => boolean} isSearch */
  constructor(rows, held, onOpened, isSearch) {
    this.#rows = rows;
    this.#names = held;
    this.#opened = onOpened;
    this.#isSearch = isSearch;
    this.list = h("div", { class: "tree-rows" });
    this.box = h("div", {
      class: "tree", role: "tree", id: "data-tree", tabindex: "0", "aria-label": "Sources and tables",
      onscroll: () => this.#draw(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.#press(event),
      onfocus: () => this.#current || this.#go(0),
    }, this.list);
    contextMenu(this.box, (event) => this.#menu(event));
    const size = new ResizeObserver(() => this.#draw());
    size.observe(this.box);
    onEnd(() => size.disconnect());
    effect(() => {
      this.#tops = [0];
      for (const { lines } of rows.value) this.#tops.push(/** @type {number} */ (this.#tops.at(-1)) + ROW + (lines - 1) * LINE);
      this.list.style.height = `${this.#tops.at(-1)}px`;
      void [this.#active.value, data.active.value, data.tabs.value];
      this.#draw();
    });
  }

  get #current() {
    return this.#rows.peek().find(({ key }) => key === this.#active.peek());
  }

  /** The row at a distance from the top. @param {number} top */
  #rowAt(top) {
    let [low, high] = [0, Math.max(0, this.#tops.length - 2)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#tops[middle] <= top) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #draw() {
    const rows = this.#rows.peek();
    const first = Math.max(0, this.#rowAt(this.box.scrollTop) - MARGIN);
    const last = Math.min(rows.length, this.#rowAt(this.box.scrollTop + this.box.clientHeight) + 1 + MARGIN);
    const tab = data.tab(data.active.peek());
    const seen = new Set();
    let before = /** @type {HTMLElement | null} */ (null);
    let active = false;
    for (let index = first; index < last; index += 1) {
      const row = rows[index];
      seen.add(row.key);
      let entry = this.#kept.get(row.key);
      if (!entry || JSON.stringify(entry.row) !== JSON.stringify(row)) {
        entry?.node.remove();
        entry = { node: this.#view(row), row };
        this.#kept.set(row.key, entry);
      }
      const { node } = entry;
      node.style.top = `${this.#tops[index]}px`;
      node.style.height = `${this.#tops[index + 1] - this.#tops[index]}px`;
      node.id = `tree-item-${index}`;
      node.setAttribute("aria-selected", String(isOf(row, tab)));
      const here = row.key === this.#active.peek();
      node.classList.toggle("active", here);
      if (here) {
        active = true;
        this.box.setAttribute("aria-activedescendant", node.id);
      }
      if (before ? before.nextSibling !== node : this.list.firstChild !== node) {
        if (before) before.after(node);
        else this.list.prepend(node);
      }
      before = node;
      if (row.kind === "more") void this.#names.more(row.place);
    }
    if (!active) this.box.removeAttribute("aria-activedescendant");
    for (const [key, { node }] of this.#kept) {
      if (seen.has(key)) continue;
      node.remove();
      this.#kept.delete(key);
    }
  }

  /** @param {TreeRow} row */
  #view(row) {
    const node = h("div", {
      class: `tree-row level-${row.level} is-${row.kind}`, role: "treeitem", "aria-level": String(row.level),
      "aria-posinset": row.of ? String(row.at) : null, "aria-setsize": row.of ? String(row.of) : null,
      "aria-expanded": row.kind === "source" || row.kind === "schema" ? String(row.open) : null,
      onclick: () => {
        this.#active.value = row.key;
        this.#choose(row, false);
      },
    }, content(row));
    if (row.kind === "source") node.classList.add(...colorClass(row.source).split(" "));
    return node;
  }

  /** @param {TreeRow} row @param {boolean} byKey */
  #choose(row, byKey) {
    if (row.kind === "source" || row.kind === "schema") this.#names.setOpen(row.key, !row.open);
    else if (row.kind === "table" || row.kind === "match") {
      void data.openTable(row.place, row.table).then((tab) => {
        if (!tab) return;
        this.#opened();
        if (byKey) document.getElementById(`panel-${tab.id}`)?.focus();
      });
    }
  }

  /** What can be done with a row. @param {MouseEvent | null} event
   * @returns {import("./context_menu.js").Menu | null} */
  #menu(event) {
    if (event) {
      const node = /** @type {Element} */ (event.target).closest(".tree-row");
      const key = [...this.#kept.values()].find((each) => each.node === node)?.row.key;
      if (!key) return null;
      this.#active.value = key;
    }
    const row = this.#current;
    if (!row || row.kind === "note" || row.kind === "more" || row.kind === "group") return null;
    const at = this.#kept.get(row.key)?.node ?? null;
    const name = nameOf(row);
    const place = row.kind === "source" ? { source: row.source.name, database: null, schema: null } : row.place;
    const copy = { label: "Copy the name", run: () => void navigator.clipboard.writeText(name).then(() => tell("Copied")) };
    const query = { label: "New query here", run: () => newQuery(place.source, place) };
    const form = { label: "New table by a form", run: () => void data.openView("createTable", place).then((tab) => tab && beginTab(tab.id)) };
    const ofTable = row.kind === "table" || row.kind === "match" ? row.table : undefined;
    const diagram = { label: "Show the diagram", run: () => void data.openView("erDiagram", place, ofTable) };
    const server = { label: "Show the server", run: () => void data.openView("serverDashboard", { ...place, schema: null }) };
    const terminal = { label: "New terminal here", run: () => void data.openView("terminal", place).then((tab) => tab && beginTab(tab.id)) };
    if (row.kind === "source" || row.kind === "schema") {
      const open = { label: row.open ? "Fold" : "Unfold", run: () => this.#choose(row, true) };
      const refresh = { label: "Read the names again", run: () => this.#names.refresh() };
      const may = row.kind === "schema" || row.source.may.read;
      return { label: name, items: may ? [open, query, terminal, form, diagram, ...(row.kind === "source" ? [server] : []), refresh, null, copy] : [copy], at };
    }
    /** @param {"rows" | "structure" | "ddl"} view */
    const show = (view) => () => void data.openTable(row.place, row.table).then((tab) => {
      if (!tab) return;
      tableState(tab.id).view.value = view;
      this.#opened();
      document.getElementById(`panel-${tab.id}`)?.focus();
    });
    return { label: name, at, items: [
      { label: "Show the rows", run: show("rows") }, { label: "Show the structure", run: show("structure") },
      { label: "Show the DDL", run: show("ddl") },
      { label: "Change it by a form", run: () => void data.openView("createTable", row.place, row.table) }, diagram, query, null, copy,
    ] };
  }

  /** Go into the tree from the search, where there is something to choose. */
  enter() {
    if (this.#rows.peek().every(({ kind }) => kind === "note" || kind === "more" || kind === "group")) return;
    this.box.focus();
    this.#go(0);
  }

  openFirst() {
    const [first] = this.#rows.peek();
    if (this.#isSearch() && first?.kind === "match") this.#choose(first, true);
  }

  /** @param {number} index */
  #go(index) {
    const rows = this.#rows.peek();
    const at = Math.max(0, Math.min(index, rows.length - 1));
    if (!rows[at]) return;
    const { box } = this;
    const [top, bottom] = [this.#tops[at], this.#tops[at + 1]];
    if (top < box.scrollTop) box.scrollTop = top;
    else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    this.#active.value = rows[at].key;
    this.#draw();
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const rows = this.#rows.peek();
    const at = rows.findIndex(({ key }) => key === this.#active.peek());
    const row = rows[at];
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + page,
      PageUp: at - page }[event.key];
    if (to !== undefined) this.#go(to);
    else if (event.key === "ArrowRight") this.#right(row, at);
    else if (event.key === "ArrowLeft") this.#left(row, at);
    else if (event.key === "Enter" || event.key === " ") row && this.#choose(row, true);
    else if (event.key.length === 1 && event.key !== "/") this.#type(event.key, at);
    else return;
    event.preventDefault();
  }

  /** @param {TreeRow | undefined} row @param {number} at */
  #right(row, at) {
    if (row?.kind !== "source" && row?.kind !== "schema") return;
    if (row.open) this.#go(at + 1);
    else this.#names.setOpen(row.key, true);
  }

  /** @param {TreeRow | undefined} row @param {number} at */
  #left(row, at) {
    if ((row?.kind === "source" || row?.kind === "schema") && row.open) this.#names.setOpen(row.key, false);
    else if (row?.parent) this.#go(this.#rows.peek().findIndex(({ key }) => key === row.parent));
    else this.#go(at);
  }

  /** Go to the next name that begins with what was typed. @param {string} letter @param {number} at */
  #type(letter, at) {
    const now = performance.now();
    const text = (now - this.#typed.at < 700 ? this.#typed.text : "") + letter.toLowerCase();
    this.#typed = { text, at: now };
    const rows = this.#rows.peek();
    const from = text.length > 1 ? at : at + 1;
    for (let step = 0; step < rows.length; step += 1) {
      const index = (Math.max(0, from) + step) % rows.length;
      if (nameOf(rows[index]).toLowerCase().startsWith(text)) {
        this.#go(index);
        return;
      }
    }
  }
}

/** @param {TreeRow} row */
function nameOf(row) {
  if (row.kind === "source") return row.source.name;
  if (row.kind === "schema" || row.kind === "group") return row.name;
  return row.kind === "table" || row.kind === "match" ? row.table : "";
}

/** Whether a row is the table of a tab.
 * @param {TreeRow} row @param {import("./data_contract.js").DataTab | undefined} tab */
const isOf = (row, tab) => (row.kind === "table" || row.kind === "match") && tab?.kind === "table" &&
  tab.table === row.table && tab.source === row.place.source &&
  (row.place.schema === null || tab.schema === null || tab.schema === row.place.schema);

/** @param {TreeRow} row */
function content(row) {
  if (row.kind === "source") {
    const { name, engine, state, message, may } = row.source;
    const why = may.read ? message : may.why_not;
    return [icon("chevron"), h("span", { class: "dot", "aria-hidden": "true" }),
      h("span", { class: "tree-name", title: why }, isolated(name)), h("span", { class: "tree-note" }, visible(engine)),
      state === "failed" || !may.read ? h("span", { class: "tree-bad", title: why }, icon(may.read ? "warning" : "mask"),
        h("span", { class: "sr" }, may.read ? "failed" : "not to be read")) : null];
  }
  if (row.kind === "group") return h("span", { class: "tree-name" }, row.name ? isolated(row.name) : "Others");
  if (row.kind === "schema") {
    return [icon("chevron"), icon("schema"), h("span", { class: "tree-name" }, isolated(row.name)),
      row.tables === null ? null : h("span", { class: "tree-note" }, number(row.tables))];
  }
  if (row.kind === "table") {
    return [icon(row.is.includes("view") ? "view" : "table"),
      h("span", { class: "tree-name", title: [row.table, row.comment].filter(Boolean).join(": ") }, isolated(row.table)),
      row.rows === null ? null : h("span", { class: "tree-note", title: `about ${number(row.rows)} rows` },
        COMPACT.format(row.rows))];
  }
  if (row.kind === "match") {
    return [h("span", { class: `dot ${colorClass(data.source(row.place.source))}`, "aria-hidden": "true" }),
      h("span", { class: "tree-name", title: [row.place.source, row.place.schema, row.table, row.column].filter(Boolean).join(".") },
        isolated(row.table), row.column ? h("span", { class: "tree-column" }, ".", isolated(row.column)) : null),
      h("span", { class: "tree-note" }, isolated(row.place.source))];
  }
  return h("span", { class: row.kind === "note" && row.bad ? "tree-text bad" : "tree-text",
    title: row.kind === "note" ? row.text : null }, row.kind === "note" ? visible(row.text) : "Loading …");
}
