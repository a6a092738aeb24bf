/** The page of a table: its rows, its structure, its definition. */

import { offer } from "./actions.js";
import { ApiError, errorText, get, post, query } from "./api.js";
import { sourceChip } from "./card.js";
import { cellPanel } from "./cell_panel.js";
import { cellText } from "./data_cells.js";
import { data } from "./data_state.js";
import { startEditing } from "./edit_start.js";
import { EditedRows } from "./edited_rows.js";
import { newQuery } from "./data_tabs.js";
import { dialogIsOpen } from "./dialogs.js";
import { h, keyed } from "./dom.js";
import { fileSaver } from "./file_saver.js";
import { grid } from "./grid.js";
import { icon } from "./icons.js";
import { copyLink } from "./link_copy.js";
import { tableLink } from "./links.js";
import { batch, computed, effect, onEnd, signal, untracked } from "./signals.js";
import { tell } from "./state.js";
import { filterForm } from "./table_filters.js";
import { TableRows } from "./table_rows.js";
import { equals, openRows, tableState } from "./table_state.js";
import { definitionView, structureView } from "./table_structure.js";
import { counted, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./data_contract.js").Filter} Filter */
/** @typedef {import("./data_contract.js").ForeignKey} ForeignKey */
/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./data_contract.js").TableFacts} TableFacts */
/** @typedef {import("./grid.js").Spot} Spot */
/** @typedef {import("./table_state.js").TableState} TableState */

const VIEWS = /** @type {const} */ ([["rows", "Rows"], ["structure", "Structure"], ["ddl", "DDL"]]);
const FACTS_MS = 400;
const FORMATS = /** @type {const} */ ([["csv", "CSV"], ["json", "JSON"], ["jsonl", "JSON lines"], ["sql", "SQL"]]);

/** What the parts of the page share. */
class TablePage {
  facts = signal(/** @type {TableFacts | null} */ (null));
  error = signal("");
  count = signal("");
  opened = signal(/** @type {Spot | null} */ (null));
  /** A row as a form, beside the grid. */
  form = signal(/** @type {import("./dom.js").Child} */ (null));
  found = new TableRows();
  /** The rows with the edits over them: the grid counts these. */
  rows = new EditedRows(this.found.rows, (index) => this.found.keyOf(index));
  #ended = new AbortController();

  /** @param {DataTab} tab */
  constructor(tab) {
    const { source, database, schema } = tab;
    this.tab = tab.id;
    this.place = /** @type {Place} */ ({ source, database, schema });
    this.table = tab.table ?? "";
    this.state = tableState(tab.id);
    onEnd(() => {
      this.#ended.abort();
      this.found.rows.clear();
    });
    // Pages of rows are as long as the number of columns makes sense, so that is waited for a little.
    const ready = signal(false);
    void this.readFacts().then(() => (ready.value = true));
    const patience = setTimeout(() => (ready.value = true), FACTS_MS);
    onEnd(() => clearTimeout(patience));
    effect(() => ready.value && this.ask(this.question));
  }

  async readFacts() {
    try {
      this.facts.value = await get(`data/table?${query({ ...this.place, table: this.table })}`, this.#ended.signal);
      this.error.value = "";
      this.found.likely = this.facts.value?.columns.length || this.found.likely;
    } catch (error) {
      if (!this.#ended.signal.aborted) this.error.value = errorText(error);
    }
  }

  /** Which rows to show. */
  get question() {
    const { filters, logic, sort } = this.state;
    return { ...this.place, table: this.table, filters: filters.value, logic: logic.value, sort: sort.value };
  }

  /** The address of what is shown. */
  get link() {
    const { view, filters, logic, sort } = this.state;
    const schema = this.place.schema ?? this.facts.peek()?.schema ?? null;
    return tableLink({ ...this.place, schema }, this.table,
      { view: view.peek(), filters: filters.peek(), logic: logic.peek(), sort: sort.peek() });
  }

  /** Ask for the rows from the first on. */
  ask(question = untracked(() => this.question)) {
    this.found.show(question);
    this.rows.edits.peek()?.forget();
    this.count.value = "";
    this.opened.value = null;
  }

  async countRows() {
    const { source, database, schema, table, filters, logic } = this.question;
    this.count.value = "Counting …";
    try {
      const found = await post("data/count", { source, database, schema, table, filters, logic }, this.#ended.signal);
      this.count.value = `${found.approximate ? "about " : ""}${counted(found.count, "row")}`;
    } catch (error) {
      if (!this.#ended.signal.aborted) this.count.value = errorText(error);
    }
  }

  /** The foreign keys that a column is part of. @param {number} column @returns {ForeignKey[]} */
  keysOf(column) {
    const name = this.found.columns.peek()[column]?.name;
    return (this.facts.value?.foreign_keys ?? []).filter(({ columns }) => columns.includes(name));
  }

  /** The values of some columns of a row, or null where one is NULL, masked or cut.
   * @param {number} index @param {readonly string[]} columns */
  values(index, columns) {
    const row = this.rows.rowAt(index);
    const all = this.found.columns.peek();
    const values = /** @type {string[]} */ ([]);
    for (const name of columns) {
      const at = all.findIndex((each) => each.name === name);
      const value = row?.[at];
      if (at < 0 || typeof value !== "string" || all[at].masked) return null;
      values.push(value);
    }
    return values;
  }

  /** Go to the row that a cell refers to. @param {number} row @param {number} column */
  async follow(row, column) {
    const [key] = this.keysOf(column);
    if (!key) {
      tell("This column refers to no table.");
      return;
    }
    const values = this.values(row, key.columns);
    if (values) await openRows(this.place, key.to, values);
    else tell("This row refers to nothing.");
  }
}

/** @param {import("./signals.js").Signal<DataTab>} tab */
export function tablePage(tab) {
  const page = new TablePage(tab.peek());
  const { state } = page;
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.code !== "KeyL" || !event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || dialogIsOpen() || !node.offsetParent) return;
    event.preventDefault();
    void copyLink(page.link);
  };
  document.addEventListener("keydown", press);
  onEnd(() => document.removeEventListener("keydown", press));
  const node = h("div", { class: "table-page" },
    h("header", { class: "table-head" }, title(page), h("div", { class: "table-tools" },
      () => (state.view.value === "rows" ? rowTools(page) : null),
      h("button", { class: "small", title: "A diagram of the table and its neighbours",
        onclick: () => void data.openView("erDiagram", page.place, page.table) },
      icon("diagram"), h("span", { class: "wide-only" }, "Diagram")), views(state))),
    () => (page.error.value
      ? h("p", { class: "error", role: "alert" }, prose(page.error.value), " ",
        h("button", { class: "small", onclick: () => void page.readFacts() }, "Try again")) : null),
    keyed(() => state.view.value, () => {
      if (state.view.peek() === "rows") return rowsView(page);
      return h("div", { class: "table-facts", tabindex: "0", role: "region", "aria-label": "About the table" },
        keyed(() => page.facts.value !== null, () => {
          const facts = page.facts.peek();
          if (!facts) return page.error.peek() ? null : h("p", { class: "note" }, "Loading …");
          return state.view.peek() === "structure" ? structureView(facts, page.place) : definitionView(facts);
        }));
    }));
  offer(() => (node.offsetParent ? [
    ...VIEWS.map(([view, label]) => ({ label: `${label} of ${page.table}`, run: () => void (state.view.value = view) })),
    { label: `Filter the rows of ${page.table}`, run: () => batch(() => {
      state.view.value = "rows";
      state.filtering.value = true;
    }) },
    { label: `Copy the link of ${page.table}`, keys: "Alt L", run: () => void copyLink(page.link) },
    { label: "Read the rows again", run: () => page.ask() },
    { label: `Change ${page.table} by a form`, run: () => void data.openView("createTable", page.place, page.table) },
    { label: "Count the rows", run: () => void page.countRows() },
    { label: `New query on ${page.place.source} beside ${page.table}`, run: () => newQuery(page.place.source, page.place) },
  ] : []));
  return node;
}

/** @param {TablePage} page */
function title(page) {
  const { place, table } = page;
  return h("div", { class: "table-title" },
    () => sourceChip(data.source(place.source)),
    h("h2", {}, place.schema ? h("span", { class: "table-schema" }, isolated(place.schema), ".") : null, isolated(table)),
    () => (page.facts.value && page.facts.value.kind !== "table"
      ? h("span", { class: "tag" }, visible(page.facts.value.kind)) : null),
    () => (page.facts.value?.comment ? h("span", { class: "note table-comment" }, isolated(page.facts.value.comment)) : null));
}

/** @param {TableState} state */
const views = (state) => h("div", { class: "views", role: "group", "aria-label": "Show" }, VIEWS.map(([view, label]) =>
  h("button", {
    type: "button", class: "small", "aria-pressed": () => String(state.view.value === view),
    onclick: () => (state.view.value = view),
  }, label)));

let menus = 0;

/** @param {TablePage} page */
function rowTools(page) {
  const { state } = page;
  const id = `export-${(menus += 1)}`;
  const saver = fileSaver("data");
  /** @param {string} format */
  const save = (format) => {
    menu.hidePopover();
    void saver.save({ ...page.question, format });
  };
  const menu = h("div", { class: "menu export-menu", popover: "auto", id, "aria-label": "Export all rows that the conditions leave" },
    h("p", { class: "note" }, () => (state.filters.value.length ? "The rows of the conditions, as" : "All rows, as")),
    FORMATS.map(([format, label]) => h("button", { class: "quiet small", onclick: () => save(format) }, label)));
  return [
    saver.node,
    h("button", {
      class: () => `small ${state.filters.value.length ? "set" : ""}`, "aria-expanded": () => String(state.filtering.value),
      onclick: () => (state.filtering.value = !state.filtering.peek()),
    }, icon("filter"), h("span", { class: "wide-only" }, "Filter"),
      () => (state.filters.value.length ? h("span", {}, `(${state.filters.value.length})`) : null)),
    h("button", { class: "small", title: "Read the rows again", onclick: () => page.ask() }, icon("refresh"),
      h("span", { class: "wide-only" }, "Refresh")),
    h("button", { class: "small", title: "Copy the link of what is shown: place, conditions and order (Alt L)", onclick: () => void copyLink(page.link) },
      icon("follow"), h("span", { class: "wide-only" }, "Copy link")),
    h("button", { class: "small", popovertarget: id }, icon("save"), h("span", { class: "wide-only" }, "Export")), menu,
  ];
}

/** @param {TablePage} page */
function rowsView(page) {
  const { state, found } = page;
  const made = grid({
    label: `Rows of ${page.table}`, columns: () => found.columns.value, rows: page.rows,
    sort: () => state.sort.value, onSort: (column, add) => state.sortBy(found.columns.peek()[column].name, add),
    canSort: (column) => !found.columns.peek()[column]?.masked,
    menu: (spot) => valueItems(page, spot),
    onOpenCell: (row, column) => page.rows.rowAt(row) && batch(() => {
      page.form.value = null;
      page.opened.value = { row, column };
    }),
    followName: (column) => page.keysOf(column)[0]?.to.table ?? "",
    onFollow: (row, column) => void page.follow(row, column),
    isCounted: () => found.known.value.all, toEnd: async (ended) => await found.toEnd(ended) + page.rows.above,
  });
  const edits = editing(page, made);
  effect(() => {
    void page.facts.value;
    made.redraw();
  });
  // The panel goes with the active cell once it is open.
  effect(() => {
    const { row, column } = made.active.value;
    if (page.opened.peek() && row >= 0 && page.rows.rowAt(row)) page.opened.value = { row, column };
  });
  effect(() => {
    void found.question;
    void [state.filters.value, state.sort.value, state.logic.value];
    made.toTop();
  });
  const failed = computed(() => found.rows.error.value);
  const nothing = computed(() => found.known.value.all && page.rows.count.value === 0);
  const close = () => {
    page.opened.value = null;
    made.focus();
  };
  return h("div", { class: "rows-view" },
    () => (state.filtering.value ? filterForm(state, () => page.facts.value?.columns ?? []) : null),
    () => found.warnings.value.map((text) => h("p", { class: "row-warning" }, icon("warning"), visible(text))),
    () => (failed.value ? problem(state.linked.value ? linkProblem(failed.value) : failed.value,
      () => (found.known.peek().count ? found.rows.retry() : page.ask())) : null),
    h("div", { class: () => `split ${page.opened.value || page.form.value ? "has-panel" : ""}` },
      h("div", { class: () => `grid-place ${nothing.value ? "is-empty" : ""}`, hidden: () => Boolean(failed.value) && !found.known.value.count },
        made.node,
        () => (nothing.value ? h("p", { class: "no-rows", role: "status" },
          state.filters.value.length ? "No row meets the conditions." : "The table has no rows.") : null)),
      keyed(() => JSON.stringify(page.opened.value), () => {
        const spot = page.opened.peek();
        return spot ? rowPanel(page, spot, close, edits) : null;
      }), () => (page.opened.value ? null : page.form.value)),
    () => edits.value?.node() ?? null, statusLine(page));
}

/** What edits the rows, where the operator may change the source.
 * @param {TablePage} page @param {ReturnType<typeof grid>} made */
function editing(page, made) {
  const { source } = page.place;
  const may = computed(() => data.sources.value.find(({ name }) => name === source)?.may.write ?? false);
  const started = signal(/** @type {ReturnType<typeof startEditing> | null} */ (null));
  effect(() => {
    started.value = !may.value ? null : untracked(() => startEditing({
      tab: page.tab, isQuery: false, source, grid: made, rows: page.rows, name: page.table, panel: page.form,
      about: () => get(`data/edits/columns?${query({ ...page.place, table: page.table })}`),
      columns: () => page.found.columns.value.map(({ name }) => name), refresh: () => page.ask(),
    }));
  });
  return started;
}

/** What can be done with a value beside what any grid does. @param {TablePage} page @param {Spot} spot
 * @returns {import("./context_menu.js").MenuItem[]} */
function valueItems(page, { row, column }) {
  const about = page.found.columns.peek()[column];
  const value = page.rows.rowAt(row)?.[column];
  if (row < 0 || !about || about.masked || value === undefined || (value !== null && typeof value === "object")) return [];
  const { state } = page;
  /** @param {"=" | "!="} operator @returns {Filter} */
  const filter = (operator) => (value === null
    ? { column: about.name, operator: operator === "=" ? "is null" : "is not null", value: "", second: "" }
    : { ...equals(about.name, value), operator });
  return [null,
    { label: "Only rows with this value", run: () => state.show([...state.filters.peek(), filter("=")]) },
    { label: "Only rows without it", run: () => state.show([...state.filters.peek(), filter("!=")]) },
  ];
}

/** What is not there and what the reader may not use look the same in a link. @param {unknown} error */
function linkProblem(error) {
  const isOfLink = error instanceof ApiError && ["policy.masked", "argument.invalid"].includes(error.code);
  return isOfLink ? "The conditions or the order of the link cannot be used here: the table has no such column for you, "
    + "or a value does not fit. No rows are shown." : error;
}

/** @param {unknown} error @param {() => void} retry */
function problem(error, retry) {
  const known = error instanceof ApiError ? error : null;
  return h("div", { class: "error rows-error", role: "alert" },
    known?.code ? h("code", {}, visible(known.code)) : null,
    h("p", {}, prose(known ? known.message : String(error))),
    known?.hint ? h("p", { class: "error-hint" }, prose(known.hint)) : null,
    h("button", { class: "small", onclick: retry }, "Try again"));
}

/** @param {TablePage} page */
function statusLine(page) {
  const { found, state } = page;
  return h("footer", { class: "status-line" },
    h("span", { role: "status" }, () => {
      const { count, all, limited } = found.known.value;
      if (found.rows.error.value && !count) return "";
      if (!count && !all) return "Loading …";
      if (limited) return `The first ${number(count)} rows; a condition shows others`;
      if (!all && found.paused.value) return `${counted(count, "row")} so far, not the end: Ctrl End goes on`;
      if (!all) return `${counted(count, "row")} so far`;
      return page.facts.value?.filtered ? counted(count, "row") : `${counted(count, "row")}, all`;
    }),
    () => (page.facts.value?.filtered
      ? h("span", { class: "filter-note" }, "A row filter of the source may hide rows from you.") : null),
    () => {
      if (found.known.value.all) return null;
      if (page.count.value) return h("span", { class: "of" }, visible(page.count.value));
      const rows = state.filters.value.length ? null : page.facts.value?.rows ?? null;
      return [rows === null ? null : h("span", { class: "of" }, `about ${number(rows)} in all`),
        h("button", { class: "small quiet", onclick: () => void page.countRows() }, "Count")];
    },
    () => (state.sort.value.length
      ? h("span", { class: "order-note" }, "by ", state.sort.value.map(({ column, direction }, at) =>
        [at ? ", " : "", isolated(column), direction === "desc" ? " descending" : ""]),
        h("button", { class: "small quiet", "aria-label": "Do not sort", onclick: () => (state.sort.value = []) }, icon("close"))) : null),
    () => {
      const may = data.sources.value.find(({ name }) => name === page.place.source)?.may;
      return may && !may.write ? h("span", { class: "read-only" }, "Read-only: ", visible(may.why_not)) : null;
    },
    h("span", { class: "elapsed" }, () => {
      if (found.rows.loading.value && found.known.value.count) return "Loading …";
      return found.known.value.elapsed ? `${number(Math.round(found.known.value.elapsed))} ms` : "";
    }));
}

/** A value whole, and where its row leads. @param {TablePage} page @param {Spot} spot @param {() => void} close
 * @param {ReturnType<typeof editing>} edits */
function rowPanel(page, spot, close, edits) {
  const { found, place, table, state, rows } = page;
  const column = found.columns.peek()[spot.column];
  const cell = rows.rowAt(spot.row)?.[spot.column] ?? null;
  const keyNames = (page.facts.peek()?.columns ?? []).filter(({ key }) => key !== null)
    .sort((one, other) => Number(one.key) - Number(other.key)).map(({ name }) => name);
  const target = rows.target(spot.row);
  const values = target && "key" in target ? target.key : [];
  const key = values.length && values.length === keyNames.length
    ? Object.fromEntries(keyNames.map((name, at) => [name, values[at]])) : null;
  const text = cellText(cell);
  return cellPanel({
    column, cell, close, title: rows.numberOf(spot.row) === null ? "New row" : `Row ${number(rows.numberOf(spot.row) ?? 0)}`,
    actions: () => [edits.value?.about.value?.editable ? h("button", { class: "small", onclick: () => {
      page.opened.value = null;
      edits.peek()?.showForm(spot.row);
    } }, "Edit the row") : null, (column.masked || (cell !== null && typeof cell === "object") ? null
      : h("button", { class: "small", onclick: () => state.show([...state.filters.peek(), text === null
        ? { column: column.name, operator: "is null", value: "", second: "" } : equals(column.name, text)]) },
      icon("filter"), "Only rows with this value"))],
    read: key ? (signal) => post("data/cell", { ...place, table, key, column: column.name }, signal) : null,
    extra: () => links(page, spot),
  });
}

/** @param {TablePage} page @param {Spot} spot */
function links(page, spot) {
  const { facts, place } = page;
  const to = (facts.value?.foreign_keys ?? []).map((key) => ({ key, end: key.to, values: page.values(spot.row, key.columns) }));
  const from = (facts.value?.referenced_by ?? []).map((key) => ({ key, end: key.from, values: page.values(spot.row, key.columns) }));
  /** @param {string} heading @param {typeof to | typeof from} all */
  const list = (heading, all) => {
    const shown = all.filter(({ values }) => values);
    return shown.length ? h("section", { class: "part" }, h("h3", {}, heading), h("ul", { class: "plain" },
      shown.map(({ end, values }) => h("li", {}, h("button", {
        class: "small link", onclick: () => void openRows(place, end, /** @type {string[]} */ (values)),
      }, icon("follow"), isolated(end.table), " ", h("span", { class: "note" }, "where ", end.columns.map((name, at) =>
        [at ? ", " : "", isolated(name), " = ", isolated(/** @type {string[]} */ (values)[at])]))))))) : null;
  };
  return [list("Refers to", to), list("Referenced by", from)];
}
