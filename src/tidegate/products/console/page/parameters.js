/** Values for the parameters of a statement: `:name`, `$1`, `?`. */

import { each, h } from "./dom.js";
import { signal } from "./signals.js";
import { isolated } from "./text.js";

/** @typedef {{ names: string[], ordered: boolean }} Found */
/** @typedef {"text" | "null" | "none"} Choice */

export const NONE = /** @type {Found} */ ({ names: [], ordered: false });

/** The parameters between two offsets, by the light lexer.
 * @param {import("./text_lines.js").TextLines} lines @param {number} from @param {number} to
 * @param {{ language: string, dialect: string }} source @returns {Found} */
export function parametersIn(lines, from, to, { language, dialect }) {
  // Marks of questions and of dollars are variables in Datalog, and `?` is an operator of PostgreSQL.
  if (language !== "sql") return NONE;
  const postgres = /postgres|redshift|cockroach/.test(dialect);
  const named = new Set();
  let [most, questions] = [0, 0];
  for (const { kind, text, at } of lines.walk(from, 1)) {
    if (at >= to) break;
    if (kind !== "parameter") continue;
    const number = /^[$?](\d+)$/.exec(text);
    if (number) most = Math.max(most, Number(number[1]));
    else if (text === "?") questions += postgres ? 0 : 1;
    else if (text[0] === ":" || (text[0] === "$" && !postgres)) named.add(text.slice(1));
  }
  if (most || questions) {
    const names = [...Array(most || questions).keys()].map((index) => (most ? `$${index + 1}` : `? ${index + 1}`));
    return { names: names.slice(0, 100), ordered: true };
  }
  return { names: /** @type {string[]} */ ([...named]).slice(0, 100), ordered: false };
}

/** What was typed for parameters in one tab, by their names. */
export class Values {
  #texts = new Map();
  #choices = /** @type {Map<string, import("./signals.js").Signal<Choice>>} */ (new Map());

  /** @param {string} name */
  textOf(name) {
    return this.#texts.get(name) ?? "";
  }

  /** @param {string} name @param {string} text */
  set(name, text) {
    this.#texts.set(name, text);
  }

  /** Whether a value was typed, or chosen to be none. @param {string} name */
  isGiven(name) {
    return this.#texts.has(name) || this.choiceOf(name).peek() !== "text";
  }

  /** What a parameter is at first, unless something was typed. @param {string} name @param {string} text */
  begin(name, text) {
    if (!this.#texts.has(name)) this.#texts.set(name, text);
  }

  /** @param {string} name */
  choiceOf(name) {
    const found = this.#choices.get(name) ?? signal(/** @type {Choice} */ ("text"));
    this.#choices.set(name, found);
    return found;
  }

  /** @param {Found} found @returns {import("./query_contract.js").Params} */
  of({ names, ordered }) {
    const value = (/** @type {string} */ name) => (this.choiceOf(name).peek() === "null" ? null : this.textOf(name));
    if (ordered) return names.map(value);
    const given = names.filter((name) => this.choiceOf(name).peek() !== "none");
    return given.length ? Object.fromEntries(given.map((name) => [name, value(name)])) : null;
  }
}

/** @param {string} name of a parameter */
export const fieldId = (name) => `parameter-${name.replace(/[^\w]/g, "-")}`;

/** @param {() => Found} found @param {Values} values @param {() => void} run
 * @param {(name: string) => import("./saved_contract.js").QueryParameter | undefined} about what is declared of one */
export function parametersForm(found, values, run, about) {
  /** @param {string} name */
  const field = (name) => {
    const choice = values.choiceOf(name);
    const label = found().ordered ? name : `:${name}`;
    const declared = found().ordered ? undefined : about(name);
    const id = fieldId(name);
    return h("div", { class: "parameter" },
      h("label", { for: id, title: declared?.description || null }, isolated(label),
        declared && declared.type !== "text" ? h("span", { class: "note" }, ` ${declared.type}`) : null),
      h("input", {
        id, value: values.textOf(name), autocomplete: "off", spellcheck: "false", dir: "auto",
        disabled: () => choice.value !== "text",
        oninput: (/** @type {Event} */ event) => values.set(name, /** @type {HTMLInputElement} */ (event.target).value),
      }),
      h("select", {
        "aria-label": `What ${label} is`,
        onchange: (/** @type {Event} */ event) => (choice.value = /** @type {Choice} */ (/** @type {HTMLSelectElement} */ (event.target).value)),
      }, [["text", "value"], ["null", "NULL"], ...(found().ordered ? [] : [["none", "no parameter"]])].map(([value, text]) =>
        h("option", { value, selected: choice.peek() === value }, text))));
  };
  return () => (found().names.length
    ? h("form", { class: "parameters", "aria-label": "Parameters", onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), run()),
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && event.ctrlKey && !event.shiftKey && (event.preventDefault(), run()) },
      each(() => found().names, (name) => `${found().ordered} ${name} ${found().ordered ? "" : JSON.stringify(about(name) ?? null)}`, (name) => field(name.peek())),
      // Enter in a field runs.
      h("button", { type: "submit", class: "sr", tabindex: "-1" }, "Run with these values"))
    : null);
}
