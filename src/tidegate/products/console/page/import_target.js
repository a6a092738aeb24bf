/** Where the rows of a file go: a table and its columns, or a new table that is made first. */

import { get, post, query } from "./api.js";
import { data } from "./data_state.js";
import { h, keyed } from "./dom.js";
import { questionView } from "./question_view.js";
import { runsOf } from "./runs.js";
import { batch, computed, signal } from "./signals.js";
import { passOn, say } from "./state.js";
import { plainStatement } from "./statement.js";
import { isolated, number, visible } from "./text.js";

/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./data_contract.js").TableColumn} TableColumn */
/** @typedef {import("./form_contract.js").FormPlan} FormPlan */
/** @typedef {import("./form_contract.js").TableForm} TableForm */
/** @typedef {import("./import_contract.js").FileImport} FileImport */

const NEW = " new";
const MOST_AT_ONCE = 1_000;

export class ImportTarget {
  place;
  table = signal("");
  tables = signal(/** @type {string[]} */ ([]));
  columns = signal(/** @type {TableColumn[]} */ ([]));
  /** The column of the table for each one of the file, empty for none. */
  pairs = signal(/** @type {string[]} */ ([]));
  form = signal(/** @type {TableForm | null} */ (null));
  plan = signal(/** @type {FormPlan | null} */ (null));
  isMaking = signal(false);
  /** The statements that make a new table. */
  runs = signal(/** @type {import("./runs.js").TabRuns | null} */ (null));
  /** The question that a person must answer before the table is made. */
  question = computed(() => {
    const run = this.runs.value?.shown?.run.value;
    return run?.state === "asking" ? run.approval : null;
  });
  isReady = computed(() => this.table.value !== "" && this.table.value !== NEW && this.pairs.value.some(Boolean));
  /** @type {FileImport | null} */
  #file = null;
  /** The form as it was proposed. @type {TableForm | null} */
  #guess = null;
  #failed;
  #changed;

  /** @param {Place} place @param {string} table @param {(error: unknown) => void} failed @param {() => void} changed */
  constructor(place, table, failed, changed) {
    this.place = signal(place);
    this.table.value = table;
    this.#failed = failed;
    this.#changed = changed;
    void this.#readTables();
  }

  get body() {
    const columns = this.pairs.peek().map((column, place) => ({ place, column })).filter(({ column }) => column);
    return { ...this.place.peek(), table: this.table.peek(), columns };
  }

  async #readTables() {
    try {
      const place = this.place.peek();
      const names = /** @type {string[]} */ ([]);
      for (let after = /** @type {string | null} */ (""); after !== null;) {
        /** @type {import("./data_contract.js").TablesPage} */
        const { tables, next } = await get(`data/tables?${query({ ...place, limit: MOST_AT_ONCE, after })}`);
        names.push(...tables.filter(({ kind }) => kind === "table").map(({ name }) => name));
        after = next;
      }
      if (place === this.place.peek()) this.tables.value = names;
    } catch (error) {
      this.#failed(error);
    }
  }

  /** @param {Place} place */
  move(place) {
    batch(() => {
      this.place.value = place;
      this.table.value = "";
      this.columns.value = [];
    });
    this.#changed();
    void this.#readTables();
  }

  /** The columns of the file, which may be read otherwise now: what was chosen for them stays. @param {FileImport} file */
  async takeColumns(file) {
    const old = this.#file;
    const same = old?.columns.length === file.columns.length && file.columns.every(({ name }, at) => name === old.columns[at].name);
    this.#file = file;
    if (this.table.peek()) await this.choose(this.table.peek(), same ? { pairs: this.pairs.peek(), form: this.form.peek() } : null);
  }

  /** @param {string} table @param {{ pairs: string[], form: TableForm | null } | null} [typed] what was chosen before */
  async choose(table, typed = null) {
    const file = this.#file;
    batch(() => {
      this.table.value = table;
      this.columns.value = [];
      this.pairs.value = [];
      this.form.value = this.plan.value = null;
    });
    this.#changed();
    if (!file || !table) return;
    const isOver = () => table !== this.table.peek() || file !== this.#file;
    try {
      if (table === NEW) {
        const { form } = await get(`data/imports/${file.id}/form?${query({ ...this.place.peek() })}`);
        if (isOver()) return;
        const next = { ...form, primary_key: form.primary_key ?? [] };
        const guess = this.#guess;
        this.#guess = structuredClone(next);
        this.form.value = typed?.form && guess ? asTyped(typed.form, guess, next) : next;
        return;
      }
      const facts = await get(`data/table?${query({ ...this.place.peek(), table })}`);
      if (isOver()) return;
      const columns = /** @type {TableColumn[]} */ (facts.columns).filter(({ generated, masked }) => !generated && !masked);
      const known = new Map(columns.map(({ name }) => [plain(name), name]));
      const isUnnamed = !file.reading.header && file.kind !== "parquet";
      batch(() => {
        this.columns.value = columns;
        this.pairs.value = typed?.pairs.length ? typed.pairs : file.columns.map(({ name }, at) => (isUnnamed ? columns[at]?.name : known.get(plain(name))) ?? "");
      });
    } catch (error) {
      this.#failed(error);
    }
  }

  /** @param {number} place @param {string} column */
  pair(place, column) {
    this.pairs.value = this.pairs.peek().map((each, at) => (at === place ? column : each === column ? "" : each));
    this.#changed();
  }

  /** Show the statements that make the table, then run them. */
  async make() {
    const form = this.form.peek();
    if (!form || this.isMaking.peek()) return;
    const place = this.place.peek();
    this.isMaking.value = true;
    try {
      const plan = /** @type {FormPlan} */ (await post("data/form-plan", { ...place, table: "", was: null, form }));
      const shown = this.plan.peek();
      this.plan.value = plan;
      const denied = plan.lacks.length || plan.steps.some(({ verdict }) => verdict === "deny");
      if (denied || JSON.stringify(shown?.steps) !== JSON.stringify(plan.steps)) return;
      const runs = (this.runs.value = runsOf(`import-${this.#file?.id}`));
      await runs.start(plan.steps.map(({ text }) => ({ statement: text, from: 0, params: null, types: null })), place, null);
      const failed = runs.items.peek().find((item) => item.run.peek()?.state !== "done");
      if (failed) throw new Error(failed.problem.peek() || failed.run.peek()?.message || "The statement did not run.");
      passOn({ seq: 0, name: "names", data: {} });
      say(`${form.name} is made.`);
      await this.#readTables();
      await this.choose(form.name);
    } catch (error) {
      this.#failed(error instanceof Error && error.constructor === Error ? error.message : error);
    } finally {
      this.isMaking.value = false;
    }
  }
}

/** A proposed form with what a person has typed over an earlier one.
 * @param {TableForm} typed @param {TableForm} guess @param {TableForm} next @returns {TableForm} */
function asTyped(typed, guess, next) {
  const columns = next.columns.map((column, at) => {
    const [mine, first] = [typed.columns[at], guess.columns[at]];
    return { ...column, name: mine.name, nullable: mine.nullable, type: mine.type === first.type ? column.type : mine.type };
  });
  return { ...next, name: typed.name, primary_key: typed.primary_key, columns };
}

/** @param {string} name */
const plain = (name) => name.toLowerCase().replace(/[\s_-]+/g, "");

/** @param {Event} event */
const valueOf = (event) => /** @type {any} */ (event.target).value;

/** @param {ImportTarget} target @param {FileImport} file */
export function targetFields(target, file) {
  const sources = data.sources.peek().filter(({ may }) => may.read);
  return [
    h("fieldset", { class: "import-target" }, h("legend", {}, "Where it goes"),
      h("label", {}, "Source", h("select", { "aria-label": "Source", onchange: (/** @type {Event} */ event) => target.move({ source: valueOf(event), database: null, schema: null }) },
        sources.map(({ name }) => h("option", { value: name, selected: name === target.place.peek().source }, visible(name))))),
      () => [h("label", {}, "Table", h("select", { "aria-label": "Table", onchange: (/** @type {Event} */ event) => void target.choose(valueOf(event)) },
        h("option", { value: "", selected: !target.table.value }, "…"),
        h("option", { value: NEW, selected: target.table.value === NEW }, "New table …"),
        target.tables.value.map((name) => h("option", { value: name, selected: name === target.table.peek() }, visible(name)))))]),
    keyed(() => target.form.value !== null, () => (target.form.peek() ? formFields(target, file) : null)),
    keyed(() => target.columns.value.map(({ name }) => name).join("\n"), () => preview(target, file)),
  ];
}

/** @param {ImportTarget} target @param {FileImport} file */
function formFields(target, file) {
  const form = /** @type {TableForm} */ (target.form.peek());
  const changed = () => (target.plan.value = null);
  /** @param {string} label @param {string} value @param {(value: string) => void} write */
  const field = (label, value, write) => h("input", { "aria-label": label, value, autocomplete: "off", spellcheck: "false",
    oninput: (/** @type {Event} */ event) => (write(valueOf(event)), changed()) });
  return h("fieldset", { class: "import-form" }, h("legend", {}, "New table"),
    h("label", {}, "Name", field("Name of the table", form.name, (value) => (form.name = value))),
    h("ol", {}, form.columns.map((column, at) => h("li", {},
      field(`Name of column ${at + 1}`, column.name, (value) => {
        form.primary_key = form.primary_key.map((each) => (each === column.name ? value : each));
        column.name = value;
      }),
      field(`Type of column ${at + 1}`, column.type, (value) => (column.type = value)),
      h("label", { class: "check" }, h("input", { type: "checkbox", "aria-label": `Column ${at + 1} is in the key`,
        checked: form.primary_key.includes(column.name), onchange: (/** @type {Event} */ event) => {
        const on = /** @type {HTMLInputElement} */ (event.target).checked;
        form.primary_key = on ? [...form.primary_key, column.name] : form.primary_key.filter((each) => each !== column.name);
        column.nullable = !on;
        changed();
      } }), "key"),
      h("span", { class: "note" }, file.columns[at]?.kind ?? "")))),
    () => {
      const plan = target.plan.value;
      if (!plan) return null;
      const denied = plan.steps.find(({ verdict }) => verdict === "deny");
      return [plan.lacks.map((each) => h("p", { class: "error" }, visible(each))), plan.steps.map(({ text }) => plainStatement(text)),
        denied ? h("p", { class: "error" }, "You may not run this here: ", visible(denied.why)) : null];
    },
    h("button", { type: "button", disabled: () => target.isMaking.value, onclick: () => void target.make() },
      () => (target.plan.value?.steps.length ? "Make the table" : "Show the statement")),
    () => (target.isMaking.value && target.plan.value ? h("p", { class: "note", role: "status" }, target.question.value
      ? "A person is asked before the table is made." : "The table is made …") : null),
    keyed(() => target.question.value, () => {
      const question = target.question.peek();
      return question ? questionView(question) : null;
    }));
}

/** The first rows, with what each column goes into. @param {ImportTarget} target @param {FileImport} file */
function preview(target, file) {
  const columns = target.columns.peek();
  return h("div", { class: "import-preview", tabindex: "0", role: "region", "aria-label": "First rows of the file" }, h("table", {},
    h("thead", {},
      h("tr", {}, h("th", { scope: "col" }, "Line"), file.columns.map(({ name, kind }) => h("th", { scope: "col" }, isolated(name), " ", h("span", { class: "note" }, kind)))),
      columns.length ? h("tr", {}, h("td", { class: "note" }, "into"), file.columns.map(({ name }, at) => h("td", {}, h("select", {
        "aria-label": `Column for ${name}`, onchange: (/** @type {Event} */ event) => target.pair(at, valueOf(event)),
      }, () => [h("option", { value: "", selected: !target.pairs.value[at] }, "nothing"),
        ...columns.map((each) => h("option", { value: each.name, selected: target.pairs.value[at] === each.name }, visible(each.name)))])))) : null),
    h("tbody", {}, file.rows.map(({ line, values, problem }) => h("tr", {}, h("td", { class: "note" }, number(line)),
      problem ? h("td", { class: "error", colspan: String(file.columns.length) }, visible(problem))
        : values.map((value) => h("td", {}, value === null ? h("span", { class: "note" }, "NULL") : isolated(value))))))));
}
