/** The fields of a table's form: columns, keys, indexes. What the database lacks is not offered. */

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { isolated, visible } from "./text.js";

/** @typedef {import("./form_contract.js").ColumnForm} ColumnForm */
/** @typedef {import("./form_contract.js").FormFacts} FormFacts */
/** @typedef {import("./form_contract.js").IndexForm} IndexForm */
/** @typedef {import("./form_contract.js").KeyForm} KeyForm */
/** @typedef {import("./form_contract.js").TableForm} TableForm */
/** What the fields work on: `changed` after a value is typed, `reshaped` where other fields are to be shown,
 * `renamed` grows with each name of a column that is typed.
 * @typedef {{ form: TableForm, facts: FormFacts, isNew: boolean, changed: () => void, reshaped: () => void,
 *   renamed: import("./signals.js").Signal<number> }} Draft */

/** The last name of a column that was not empty: keys and indexes name it by that while another is typed.
 * @type {WeakMap<ColumnForm, string>} */
const named = new WeakMap();
const ACTIONS = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];

/** @param {string} label @param {string} value @param {(value: string) => void} write @param {Record<string, any>} [more] */
export const textField = (label, value, write, more = {}) => h("input", {
  "aria-label": label, value, autocomplete: "off", spellcheck: "false", dir: "auto", ...more,
  oninput: (/** @type {Event} */ event) => write(/** @type {HTMLInputElement} */ (event.target).value),
});

/** @param {string} label @param {readonly (readonly [string, string])[]} options @param {string} value
 * @param {(value: string) => void} write @param {Record<string, any>} [more] */
const choiceField = (label, options, value, write, more = {}) => h("select", {
  "aria-label": label, ...more,
  onchange: (/** @type {Event} */ event) => write(/** @type {HTMLSelectElement} */ (event.target).value),
}, options.map(([each, text]) => h("option", { value: each, selected: each === value }, visible(text))));

/** @param {string} label @param {boolean} checked @param {(value: boolean) => void} write @param {boolean} [disabled] */
const checkField = (label, checked, write, disabled = false) => h("label", { class: "check" }, h("input", {
  type: "checkbox", checked, disabled,
  onchange: (/** @type {Event} */ event) => write(/** @type {HTMLInputElement} */ (event.target).checked),
}), label);

/** @param {string} label @param {() => void} work */
const removeButton = (label, work) => h("button", { type: "button", class: "quiet small", "aria-label": label, onclick: work }, icon("close"));

/** @param {Draft} draft @param {string} types the id of the list of types */
export function columnFields(draft, types) {
  const { form, facts: { lacks }, isNew, changed, reshaped, renamed } = draft;
  return form.columns.map((column, at) => {
    if (column.name) named.set(column, column.name);
    const old = Boolean(column.was);
    const nth = `of column ${at + 1}`;
    const fixed = Boolean(column.fixed);
    const known = () => named.get(column) ?? "";
    const key = form.primary_key.includes(known());
    /** @param {string} feature */
    const locked = (feature) => fixed || (old && feature in lacks);
    /** @param {string} name */
    const rename = (name) => {
      const was = known();
      column.name = name;
      if (name) {
        const names = (/** @type {string[]} */ list) => list.map((each) => (each === was && was ? name : each));
        // A column may be made the key before it has a name.
        form.primary_key = form.primary_key.map((each) => (each === was ? name : each));
        for (const each of [...form.foreign_keys, ...form.indexes]) each.columns = names(each.columns);
        named.set(column, name);
      }
      renamed.value = renamed.peek() + 1;
      changed();
    };
    return h("fieldset", { class: "form-column" }, h("legend", { class: "sr" }, `Column ${at + 1}`),
      textField(`Name ${nth}`, column.name, rename, { placeholder: "name", class: "form-name" }),
      textField(`Type ${nth}`, column.type, (value) => (column.type = value, changed()), { placeholder: "type", list: types, disabled: locked("column.type") }),
      checkField("key", key, (on) => {
        form.primary_key = on ? [...form.primary_key, known()] : form.primary_key.filter((name) => name !== known());
        if (on) column.nullable = false;
        reshaped();
      }, fixed || (!isNew && "primary_key" in lacks)),
      checkField("may be NULL", column.nullable, (on) => (column.nullable = on, changed()), key || locked("column.nullable")),
      "identity" in lacks ? null : checkField("numbers itself", column.identity, (on) => {
        column.identity = on;
        if (on) column.default = null;
        reshaped();
      }, old || fixed),
      column.identity || fixed ? null : defaultFields(column, nth, locked("column.default"), draft),
      "column.comment" in lacks ? null
        : textField(`Comment ${nth}`, column.comment, (value) => (column.comment = value, changed()), { placeholder: "comment", disabled: fixed }),
      fixed ? h("span", { class: "note" }, isolated(column.fixed)) : null,
      removeButton(`Remove column ${at + 1}`, () => {
        form.columns = form.columns.filter((each) => each !== column);
        form.primary_key = form.primary_key.filter((name) => name !== known());
        reshaped();
      }));
  });
}

/** @param {ColumnForm} column @param {string} nth @param {boolean} disabled @param {Draft} draft */
function defaultFields(column, nth, disabled, { changed, reshaped }) {
  const kinds = /** @type {const} */ ([["", "no default"], ["literal", "default value"], ["expression", "default expression"]]);
  return [
    choiceField(`Default ${nth}`, kinds, column.default?.kind ?? "", (kind) => {
      column.default = kind ? { kind: /** @type {"literal" | "expression"} */ (kind), text: column.default?.text ?? "" } : null;
      reshaped();
    }, { disabled }),
    column.default ? textField(`What is the default ${nth}`, column.default.text, (text) => {
      if (column.default) column.default.text = text;
      changed();
    }, { disabled, placeholder: column.default.kind === "literal" ? "value" : "expression" }) : null,
  ];
}

/** Columns in order, by the names that they have now: each can be another one or none, and one more can be added.
 * @param {string} label @param {() => string[]} chosen @param {Draft} draft @param {(columns: string[]) => void} write
 * @param {boolean} [grows] */
function columnsField(label, chosen, { form, renamed }, write, grows = true) {
  const shown = () => (grows ? [...chosen(), ""] : chosen());
  return shown().map((_, at) => h("select", {
    "aria-label": `${label}, column ${at + 1}`,
    onchange: (/** @type {Event} */ event) => {
      const next = [...shown()];
      next[at] = /** @type {HTMLSelectElement} */ (event.target).value;
      write(grows ? next.filter(Boolean) : next);
    },
  }, () => (void renamed.value, ["", ...form.columns.map(({ name }) => name).filter(Boolean)].map((name) =>
    h("option", { value: name, selected: name === shown()[at] }, visible(name || "…"))))));
}

/** @param {Draft} draft */
export function keyFields(draft) {
  const { form, facts, isNew, changed, reshaped } = draft;
  const known = facts.tables.map(({ schema, name }) => /** @type {[string, string]} */ ([JSON.stringify([schema, name]),
    schema === form.schema ? name : `${schema}.${name}`]));
  return form.foreign_keys.map((key, at) => {
    const nth = `of foreign key ${at + 1}`;
    const old = !isNew && "foreign_key.drop" in facts.lacks && at < draft.facts.form.foreign_keys.length;
    const schema = key.schema || form.schema;
    /** @param {string} value */
    const choose = (value) => {
      const [to, table] = JSON.parse(value);
      const target = facts.tables.find((each) => each.schema === to && each.name === table);
      Object.assign(key, { table, schema: to === form.schema ? "" : to, references: target?.key.length ? [...target.key] : [""] });
      key.columns = key.references.map((_, place) => key.columns[place] ?? "");
      reshaped();
    };
    return h("fieldset", { class: "form-key", disabled: old }, h("legend", {}, `Foreign key ${at + 1}`),
      columnsField(`Columns ${nth}`, () => key.columns, draft, (columns) => (key.columns = columns, changed()), false),
      h("span", {}, "refers to"),
      choiceField(`Table ${nth}`, [["[]", "…"], ...known], JSON.stringify([schema, key.table]), choose),
      key.references.map((column, place) => textField(`Column ${place + 1} that ${nth.slice(3)} refers to`, column,
        (value) => (key.references[place] = value, changed()))),
      "foreign_key.actions" in facts.lacks ? null : /** @type {const} */ (["on_delete", "on_update"]).map((field) =>
        choiceField(`${field === "on_delete" ? "On delete" : "On update"} ${nth}`, ACTIONS.map((each) => [each, `${field === "on_delete" ? "on delete" : "on update"}: ${each.toLowerCase()}`]),
          key[field], (value) => (key[field] = value, changed()))),
      "foreign_key.name" in facts.lacks ? null : textField(`Name ${nth}`, key.name, (value) => (key.name = value, changed()), { placeholder: "name" }),
      old ? null : removeButton(`Remove foreign key ${at + 1}`, () => {
        form.foreign_keys = form.foreign_keys.filter((each) => each !== key);
        reshaped();
      }));
  });
}

/** @param {Draft} draft */
export function indexFields(draft) {
  const { form, changed, reshaped } = draft;
  return form.indexes.map((index, at) => {
    const nth = `of index ${at + 1}`;
    if (index.fixed) {
      return h("p", { class: "form-fixed note" }, isolated(index.name), " (", index.columns.map((each, place) => [place ? ", " : "", isolated(each)]),
        "): it has more to it than a form can say, and stays as it is.");
    }
    return h("fieldset", { class: "form-key" }, h("legend", {}, `Index ${at + 1}`),
      textField(`Name ${nth}`, index.name, (value) => (index.name = value, changed()), { placeholder: "name" }),
      columnsField(`Columns ${nth}`, () => index.columns, draft, (columns) => (index.columns = columns, reshaped())),
      checkField("unique", index.unique, (on) => (index.unique = on, changed())),
      removeButton(`Remove index ${at + 1}`, () => {
        form.indexes = form.indexes.filter((each) => each !== index);
        reshaped();
      }));
  });
}
