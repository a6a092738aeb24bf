/** The conditions on the rows of a table: a column, an operator of its kind, a value. */

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { effect, signal, untracked } from "./signals.js";
import { visible } from "./text.js";

/** @typedef {import("./data_contract.js").ColumnKind} ColumnKind */
/** @typedef {import("./data_contract.js").Filter} Filter */
/** @typedef {import("./data_contract.js").TableColumn} TableColumn */
/** @typedef {import("./table_state.js").TableState} TableState */

const ORDERED = ["=", "!=", "<", "<=", ">", ">=", "between", "in", "is null", "is not null"];
const OPERATORS = /** @type {Record<ColumnKind, string[]>} */ ({
  number: ORDERED, time: ORDERED,
  text: ["=", "!=", "contains", "starts with", "in", "<", "<=", ">", ">=", "between", "is null", "is not null"],
  bool: ["=", "!=", "is null", "is not null"],
  json: ["contains", "is null", "is not null"],
  binary: ["is null", "is not null"],
  other: ["=", "!=", "contains", "in", "is null", "is not null"],
});
const WORDS = /** @type {Record<string, string>} */ ({
  "=": "is", "!=": "is not", "<=": "≤", ">=": "≥", in: "is one of",
});
const HINTS = /** @type {Partial<Record<ColumnKind, string>>} */ ({
  number: "42", time: "2026-01-31 12:00", text: "text",
});
const WITHOUT_VALUE = new Set(["is null", "is not null"]);

/** @param {TableState} state @param {() => TableColumn[]} columns */
export function filterForm(state, columns) {
  const usable = () => columns().filter(({ masked }) => !masked);
  const drafts = signal(/** @type {Filter[]} */ (state.filters.peek().length
    ? [...state.filters.peek()] : []));
  effect(() => {
    const given = state.filters.value;
    const all = usable();
    if (given.length) drafts.value = given.map((each) => ({ ...each }));
    else if (untracked(() => !drafts.value.length) && all.length) drafts.value = [blank(all[0])];
  });
  const apply = () => {
    state.linked.value = false;
    state.filters.value = drafts.peek().filter(({ operator, value }) => WITHOUT_VALUE.has(operator) || value !== "")
      .map((each) => ({ ...each }));
  };
  /** @param {number} at */
  const remove = (at) => {
    drafts.value = drafts.peek().filter((_, place) => place !== at);
    apply();
    if (!drafts.peek().length) state.filtering.value = false;
  };
  return h("form", { class: "conditions", "aria-label": "Conditions", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    apply();
  } },
    () => drafts.value.map((draft, at) => condition(draft, at, usable, drafts, () => remove(at), state)),
    h("div", { class: "condition-actions" },
      h("button", { type: "button", class: "small quiet", onclick: () => {
        const [first] = usable();
        if (first) drafts.value = [...drafts.peek(), blank(first)];
      } }, icon("add"), "Condition"),
      h("button", { type: "submit", class: "small primary" }, "Apply"),
      () => (state.filters.value.length
        ? h("button", { type: "button", class: "small quiet", onclick: () => {
          drafts.value = [];
          state.filters.value = [];
          state.filtering.value = false;
        } }, "Show all rows") : null)));
}

/** @param {TableColumn} column @returns {Filter} */
const blank = (column) => ({ column: column.name, operator: OPERATORS[column.kind]?.[0] ?? "=", value: "", second: "" });

/** @param {Filter} draft @param {number} at @param {() => TableColumn[]} columns
 * @param {import("./signals.js").Signal<Filter[]>} drafts @param {() => void} remove @param {TableState} state */
function condition(draft, at, columns, drafts, remove, state) {
  const kind = columns().find(({ name }) => name === draft.column)?.kind ?? "other";
  /** @param {Partial<Filter>} changes */
  const change = (changes) => {
    drafts.value = drafts.peek().map((each, place) => (place === at ? { ...each, ...changes } : each));
  };
  const nth = `of condition ${at + 1}`;
  const operators = OPERATORS[kind] ?? OPERATORS.other;
  return h("div", { class: "condition" },
    at === 0 ? h("span", { class: "joint" }, "Where")
      : at === 1 ? h("select", { "aria-label": "All conditions or any", class: "joint",
        onchange: (/** @type {Event} */ event) => {
          state.logic.value = /** @type {"and" | "or"} */ (/** @type {HTMLSelectElement} */ (event.target).value);
        } }, ["and", "or"].map((each) => h("option", { value: each, selected: state.logic.value === each }, each)))
        : h("span", { class: "joint" }, () => state.logic.value),
    h("select", { "aria-label": `Column ${nth}`, onchange: (/** @type {Event} */ event) => {
      const column = columns().find(({ name }) => name === /** @type {HTMLSelectElement} */ (event.target).value);
      if (column) change({ ...blank(column), value: draft.value });
    } }, [...(columns().some(({ name }) => name === draft.column) ? [] : [draft.column]), ...columns().map(({ name }) => name)]
      .map((name) => h("option", { value: name, selected: name === draft.column }, visible(name)))),
    h("select", { "aria-label": `Operator ${nth}`, onchange: (/** @type {Event} */ event) =>
      change({ operator: /** @type {HTMLSelectElement} */ (event.target).value }) },
    [...new Set([...operators, draft.operator])].map((each) => h("option", { value: each, selected: each === draft.operator }, WORDS[each] ?? each))),
    WITHOUT_VALUE.has(draft.operator) ? null : valueField(draft, kind, nth, "value"),
    draft.operator === "between" ? [h("span", { class: "joint" }, "and"), valueField(draft, kind, nth, "second")] : null,
    h("button", { type: "button", class: "quiet small", "aria-label": `Remove condition ${at + 1}`, onclick: remove }, icon("close")));
}

/** @param {Filter} draft is written while it is typed @param {ColumnKind} kind @param {string} nth
 * @param {"value" | "second"} field */
function valueField(draft, kind, nth, field) {
  const label = `${field === "value" ? "Value" : "Second value"} ${nth}`;
  /** @param {Event} event */
  const write = (event) => (draft[field] = /** @type {HTMLInputElement} */ (event.target).value);
  if (kind === "bool") {
    return h("select", { "aria-label": label, onchange: write }, [["", "…"], ["true", "true"], ["false", "false"]]
      .map(([value, text]) => h("option", { value, selected: value === draft[field] }, text)));
  }
  return h("input", {
    type: "text", "aria-label": label, value: draft[field], spellcheck: "false", autocomplete: "off", dir: "auto",
    inputmode: kind === "number" && draft.operator !== "in" ? "decimal" : null,
    placeholder: draft.operator === "in" ? "values between commas" : HINTS[kind] ?? "", oninput: write,
  });
}
