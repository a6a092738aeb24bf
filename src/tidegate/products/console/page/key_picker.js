/** Choose the row that a foreign key refers to: by what is in it, not by its key alone. */

import { errorText, get, post, query } from "./api.js";
import { cellText } from "./data_cells.js";
import { each, h } from "./dom.js";
import { root, signal } from "./signals.js";
import { isolated, prose, visible } from "./text.js";

/** @typedef {import("./edit_contract.js").Reference} Reference */
/** @typedef {import("./data_contract.js").DataColumn} DataColumn */
/** @typedef {import("./data_contract.js").DataCell} DataCell */

const WAIT_MS = 150;
const SHOWN_COLUMNS = 5;
const MOST = 50;

/** The values of the columns that the key refers to, or null. @param {string} source @param {Reference} to
 * @returns {Promise<string[] | null>} */
export function pickKey(source, to) {
  return new Promise((resolve) => {
    const [dialog, stop] = root(() => build(source, to, (values) => {
      dialog.close();
      dialog.remove();
      stop();
      resolve(values);
    }));
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("input")?.focus();
  });
}

/** @param {string} source @param {Reference} to @param {(values: string[] | null) => void} leave */
function build(source, to, leave) {
  const place = { source, database: to.database, schema: to.schema, table: to.table };
  const found = signal(/** @type {{ columns: DataColumn[], rows: DataCell[][], next: string | null }} */ ({ columns: [], rows: [], next: null }));
  const at = signal(0);
  const error = signal("");
  const loaded = signal(false);
  let asked = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** The text that the rows are asked for by. */
  let sought = "";
  let loading = Promise.resolve();
  const facts = get(`data/table?${query(place)}`).catch(() => null);
  const load = () => (loading = read());
  const read = async () => {
    asked.abort();
    const { signal: ended } = (asked = new AbortController());
    const text = (sought = input.value.trim());
    try {
      /** @type {import("./data_contract.js").TableFacts | null} */
      const about = await facts;
      const readable = (about?.columns ?? []).filter(({ masked }) => !masked);
      const filters = !text ? [] : readable.flatMap(({ name, kind }) => {
        if (kind === "text") return [{ column: name, operator: "contains", value: text, second: "" }];
        return kind === "number" && to.columns.includes(name) && /^-?\d+(?:\.\d+)?$/.test(text)
          ? [{ column: name, operator: "=", value: text, second: "" }] : [];
      });
      if (text && !filters.length) found.value = { ...found.peek(), rows: [], next: null };
      else found.value = await post("data/rows", { ...place, filters, logic: "or", sort: [], limit: MOST }, ended);
      at.value = 0;
      error.value = "";
      loaded.value = true;
    } catch (caught) {
      if (!ended.aborted) error.value = errorText(caught);
    }
  };
  /** @param {DataCell[]} row */
  const valuesOf = (row) => to.columns.map((name) => row[found.peek().columns.findIndex((column) => column.name === name)]);
  /** @param {DataCell[] | undefined} row */
  const choose = (row) => {
    const values = row && valuesOf(row);
    if (values?.every((value) => typeof value === "string")) leave(/** @type {string[]} */ (values));
  };
  /** Choose the row that is marked, once the rows are those of what was typed. */
  const accept = async () => {
    if (sought !== input.value.trim()) {
      clearTimeout(timer);
      void load();
    }
    await loading;
    if (input.isConnected && !error.peek() && sought === input.value.trim()) choose(found.peek().rows[at.peek()]);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) at.value = Math.min(Math.max(at.peek() + step, 0), found.peek().rows.length - 1);
    else if (event.key === "Enter") void accept();
    else return;
    event.preventDefault();
    document.getElementById(`key-${at.peek()}`)?.scrollIntoView({ block: "nearest" });
  };
  const input = h("input", {
    type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "key-list", "aria-autocomplete": "list",
    "aria-label": `Search ${to.table}`, placeholder: `Search ${to.table}`, autocomplete: "off", spellcheck: "false",
    "aria-activedescendant": () => (found.value.rows.length ? `key-${at.value}` : null),
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => void load(), WAIT_MS);
    },
    onkeydown: press,
  });
  void load();
  return h("dialog", { class: "palette key-picker", "aria-label": `Choose a row of ${to.table}`,
    oncancel: (/** @type {Event} */ event) => (event.preventDefault(), leave(null)) },
    input,
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    h("ul", { role: "listbox", id: "key-list", "aria-label": `Rows of ${to.table}` },
      each(() => found.value.rows.map((row, index) => ({ row, index })), ({ row, index }) => `${index} ${JSON.stringify(row.slice(0, SHOWN_COLUMNS))}`, (item) => {
        const { row, index } = item.peek();
        return h("li", { role: "option", id: `key-${index}`, "aria-selected": () => String(at.value === index), onclick: () => choose(row) },
          h("strong", {}, visible(valuesOf(row).map((value) => cellText(value) ?? "NULL").join(", "))),
          h("span", { class: "kind" }, others(row, found.peek().columns, to.columns)));
      })),
    () => (loaded.value && !found.value.rows.length ? h("p", { class: "note" }, "No row has that.") : null),
    () => (found.value.next ? h("p", { class: "note" }, `The first ${MOST} rows: type more to find others.`) : null),
    h("div", { class: "dialog-actions" }, h("button", { class: "quiet", onclick: () => leave(null) }, "Cancel")));
}

/** @param {DataCell[]} row @param {DataColumn[]} columns @param {string[]} key */
const others = (row, columns, key) => row.flatMap((value, index) =>
  (key.includes(columns[index]?.name) || value === null ? [] : [value])).slice(0, SHOWN_COLUMNS)
  .map((value, index) => [index ? " · " : "", isolated((cellText(value) ?? "").slice(0, 60))]);
