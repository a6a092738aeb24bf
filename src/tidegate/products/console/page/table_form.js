/** A table by form: what a person fills in, the statements that it makes, and their runs. */

import { errorText, get, post, query } from "./api.js";
import { sourceChip } from "./card.js";
import { data } from "./data_state.js";
import { dialogIsOpen } from "./dialogs.js";
import { h, keyed, loadStyle } from "./dom.js";
import { columnFields, indexFields, keyFields, textField } from "./form_fields.js";
import { icon } from "./icons.js";
import { runsView } from "./run_view.js";
import { runsOf } from "./runs.js";
import { onEnd, signal } from "./signals.js";
import { passOn, say } from "./state.js";
import { plainStatement } from "./statement.js";
import { isolated, prose, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./form_contract.js").FormFacts} FormFacts */
/** @typedef {import("./form_contract.js").FormPlan} FormPlan */
/** @typedef {import("./form_contract.js").TableForm} TableForm */

const PLAN_MS = 350;
const SAVE_MS = 800;

/** @param {import("./signals.js").Signal<DataTab>} tab */
export function tableFormTab(tab) {
  void loadStyle("table_form.css");
  return new TableFormTab(tab).node;
}

class TableFormTab {
  #facts = signal(/** @type {FormFacts | null} */ (null));
  #plan = signal(/** @type {FormPlan | null} */ (null));
  #problem = signal("");
  /** Grows where other fields are to be shown. */
  #shape = signal(0);
  /** The table that was made or changed, by the name that it has now. */
  #done = signal("");
  /** @type {TableForm} */
  #form = { name: "", schema: "", columns: [], primary_key: [], foreign_keys: [], indexes: [], comment: "" };
  /** The form that the table had when this one was opened. @type {TableForm | null} */
  #was = null;
  #tab;
  #place;
  #ended = new AbortController();
  #asked = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #planning;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #saving;

  /** @param {import("./signals.js").Signal<DataTab>} tab */
  constructor(tab) {
    this.#tab = tab;
    const { id, source, database, schema } = tab.peek();
    this.#place = { source, database, schema };
    this.runs = runsOf(id);
    void this.#load();
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || dialogIsOpen() || !this.node.offsetParent) return;
      event.preventDefault();
      void this.run();
    };
    document.addEventListener("keydown", press);
    onEnd(() => {
      document.removeEventListener("keydown", press);
      this.#ended.abort();
      clearTimeout(this.#planning);
      if (this.#saving) void this.#save();
    });
    this.node = h("section", { class: "table-form", "aria-label": this.#isNew ? "New table" : `Change ${tab.peek().table}` },
      h("header", { class: "table-head" }, h("div", { class: "table-title" }, () => sourceChip(data.source(source)),
        h("h2", {}, this.#isNew ? "New table" : ["Change ", isolated(tab.peek().table ?? "")]))),
      () => (this.#problem.value ? h("p", { class: "error", role: "alert" }, prose(this.#problem.value), " ",
        h("button", { class: "small", onclick: () => void this.#load() }, "Try again")) : null),
      h("div", { class: "form-both" },
        keyed(() => `${this.#facts.value !== null} ${this.#shape.value}`, () => (this.#facts.peek() ? this.#fields(/** @type {FormFacts} */ (this.#facts.peek()))
          : this.#problem.peek() ? null : h("p", { class: "note" }, "Loading …"))),
        h("section", { class: "form-plan", "aria-label": "Statements" }, h("h3", {}, "Statements"), () => this.#planView(),
          h("div", { class: "runs-place", hidden: () => !this.runs.items.value.length },
            runsView(this.runs, { again: () => void this.run(), cancel: () => this.runs.cancel(), goTo: () => {} }, () => "")))));
  }

  get #isNew() {
    return !this.#tab.peek().table;
  }

  /** @param {boolean} [fresh] whether what was typed is left */
  async #load(fresh = false) {
    const { table, text } = this.#tab.peek();
    try {
      const facts = /** @type {FormFacts} */ (await get(`data/form?${query({ ...this.#place, table })}`, this.#ended.signal));
      const typed = fresh ? null : read(text);
      this.#form = typed?.form ?? structuredClone(facts.form);
      this.#was = this.#isNew ? null : typed?.was ?? facts.form;
      if (this.#isNew && !this.#form.columns.length) this.#form.columns.push(blank(facts.types[0]));
      this.#problem.value = "";
      this.#facts.value = facts;
      this.#shape.value += 1;
      if (this.#isNew && document.activeElement?.id === `panel-${this.#tab.peek().id}`) {
        /** @type {HTMLElement | null} */ (this.node.querySelector(".form-table"))?.focus();
      }
      this.#ask();
    } catch (error) {
      if (!this.#ended.signal.aborted) this.#problem.value = errorText(error);
    }
  }

  #changed() {
    this.#done.value = "";
    clearTimeout(this.#planning);
    this.#planning = setTimeout(() => this.#ask(), PLAN_MS);
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => void this.#save(), SAVE_MS);
    data.setEdited(this.#tab.peek().id, true);
  }

  #reshaped() {
    const { activeElement } = document;
    const label = activeElement?.getAttribute("aria-label") ?? activeElement?.closest("label")?.textContent ?? "";
    const within = activeElement?.closest("fieldset")?.querySelector("legend")?.textContent ?? "";
    this.#shape.value += 1;
    this.#changed();
    // The field that was worked in is another node now.
    const fields = [...this.node.querySelectorAll("input, select, button")].filter((each) =>
      (each.getAttribute("aria-label") ?? each.closest("label")?.textContent ?? "") === label &&
      (each.closest("fieldset")?.querySelector("legend")?.textContent ?? "") === within);
    if (document.activeElement === document.body) /** @type {HTMLElement | undefined} */ (fields[0] ?? this.node.querySelector(".form-name"))?.focus();
  }

  async #save() {
    this.#saving = undefined;
    const { id } = this.#tab.peek();
    try {
      if (!(await data.write(id, { text: JSON.stringify({ form: this.#form, was: this.#was }) }))) this.#problem.value = "Another page has changed this form.";
      else data.setEdited(id, false);
    } catch (error) {
      this.#problem.value = errorText(error);
    }
  }

  #ask() {
    this.#asked.abort();
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    const body = { ...this.#place, table: this.#tab.peek().table ?? "", form: this.#form, was: this.#was };
    post("data/form-plan", body, signal).then((plan) => (this.#plan.value = plan),
      (error) => signal.aborted || (this.#problem.value = errorText(error)));
  }

  /** @param {FormFacts} facts */
  #fields(facts) {
    const form = this.#form;
    const isNew = this.#isNew;
    const draft = { form, facts, isNew, changed: () => this.#changed(), reshaped: () => this.#reshaped(), renamed: signal(0) };
    const { lacks } = facts;
    const reasons = [...new Set(Object.entries(lacks).filter(([feature]) => !isNew || ["identity", "column.comment", "foreign_key.actions"].includes(feature))
      .map(([, reason]) => reason))];
    const types = `types-${this.#tab.peek().id}`;
    /** @param {string} label @param {() => void} add */
    const addButton = (label, add) => h("button", { type: "button", class: "small quiet", onclick: () => (add(), this.#reshaped()) }, icon("add"), label);
    return h("form", { class: "form-fields", "aria-label": "The table", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      h("datalist", { id: types }, facts.types.map((value) => h("option", { value }))),
      h("div", { class: "form-line" }, form.schema ? h("span", { class: "note" }, isolated(form.schema), ".") : null,
        textField("Name of the table", form.name, (value) => (form.name = value, this.#changed()), { placeholder: "name of the table", class: "form-table" }),
        "table.comment" in lacks ? null : textField("Comment of the table", form.comment, (value) => (form.comment = value, this.#changed()), { placeholder: "comment" })),
      h("h3", {}, "Columns"), columnFields(draft, types),
      addButton("Column", () => form.columns.push(blank(facts.types[0]))),
      h("h3", {}, "Foreign keys"), keyFields(draft),
      !isNew && "foreign_key.add" in lacks ? null : addButton("Foreign key", () => form.foreign_keys.push(
        { columns: [""], table: "", references: [""], name: "", schema: "", on_delete: "NO ACTION", on_update: "NO ACTION" })),
      h("h3", {}, "Indexes"), indexFields(draft),
      addButton("Index", () => form.indexes.push({ name: "", columns: [], unique: false, fixed: false })),
      reasons.length ? h("section", { class: "form-lacks" }, h("h3", {}, "Not here"), h("ul", {}, reasons.map((each) => h("li", {}, visible(each))))) : null);
  }

  #planView() {
    const plan = this.#plan.value;
    const made = this.#done.value;
    if (made) {
      return h("p", { class: "good", role: "status" }, icon("check"), " ", isolated(made), this.#isNew ? " is made. " : " is changed. ",
        h("button", { class: "small", onclick: () => void data.openTable(this.#place, made) }, "Open the table"));
    }
    if (!plan) return h("p", { class: "note" }, "…");
    if (plan.lacks.length) {
      return [h("ul", { class: "form-lacks bad", "aria-label": "What is missing" }, plan.lacks.map((each) => h("li", {}, visible(each)))),
        plan.stale ? h("button", { onclick: () => void this.#load(true).then(() => this.#save()) }, "Read the table again, and drop what was typed") : null];
    }
    if (!plan.steps.length) return h("p", { class: "note" }, "Nothing is changed.");
    const denied = plan.steps.find(({ verdict }) => verdict === "deny");
    return [
      h("ol", { class: "form-steps" }, plan.steps.map(({ text, warnings, verdict }) => h("li", {}, plainStatement(text),
        verdict === "ask" ? h("p", { class: "doubt" }, "A person is asked before it runs.") : null,
        warnings.map((each) => h("p", { class: "form-warning" }, icon("warning"), visible(each)))))),
      plan.stays ? h("p", { class: "note" }, visible(plan.stays)) : null,
      denied ? h("p", { class: "bad" }, "You may not run this here: ", visible(denied.why)) : null,
      h("button", { class: "primary", disabled: () => Boolean(denied) || this.runs.isBusy.value, title: "Run the statements in order (Ctrl Enter)",
        onclick: () => void this.run() }, icon("run"), this.#isNew ? "Make the table" : "Change the table"),
    ];
  }

  async run() {
    const plan = this.#plan.peek();
    if (!plan?.steps.length || plan.lacks.length || this.runs.isBusy.peek()) return;
    const parts = plan.steps.map(({ text }) => ({ statement: text, from: 0, params: null, types: null }));
    const { name } = this.#form;
    await this.runs.start(parts, this.#place, null);
    const items = this.runs.items.peek();
    if (items.length < parts.length || items.some((item) => item.run.peek()?.state !== "done")) {
      say("A statement did not run: see why.");
      this.#ask();
      return;
    }
    passOn({ seq: 0, name: "names", data: {} });
    passOn({ seq: 0, name: "table", data: { source: this.#place.source, schema: this.#place.schema, table: this.#tab.peek().table ?? name } });
    this.#plan.value = null;
    this.#done.value = name;
    say(`${name} is ${this.#isNew ? "made" : "changed"}.`);
    if (this.#isNew || name !== this.#tab.peek().table) return;
    await this.#load(true);
    await this.#save();
    this.#done.value = name;
  }
}

/** @param {string} type @returns {import("./form_contract.js").ColumnForm} */
const blank = (type) => ({ name: "", type, nullable: true, default: null, identity: false, comment: "", fixed: "", was: "" });

/** What was typed before. @param {string | null} text @returns {{ form: TableForm, was: TableForm | null } | null} */
function read(text) {
  try {
    const found = text ? JSON.parse(text) : null;
    const { columns, indexes, foreign_keys: keys } = found?.form ?? {};
    return Array.isArray(columns) && Array.isArray(indexes) && Array.isArray(keys) ? found : null;
  } catch {
    return null;
  }
}
