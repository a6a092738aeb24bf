/** How a file is read: the guesses, which a person can change. */

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { visible } from "./text.js";

/** @typedef {import("./import_contract.js").FileImport} FileImport */
/** @typedef {import("./import_contract.js").Reading} Reading */

const ENCODINGS = /** @type {[string, string][]} */ ([["utf-8", "UTF-8"], ["utf-16", "UTF-16 with a mark"], ["cp1252", "Windows-1252"]]);
const DELIMITERS = /** @type {[string, string][]} */ ([[",", "comma"], [";", "semicolon"], ["\t", "tab"], ["|", "bar"], [" ", "space"]]);
const DECIMALS = /** @type {[string, string][]} */ ([[".", "1,234.50"], [",", "1.234,50"]]);
const DATES = /** @type {[string, string][]} */ ([["dmy", "31/12/2024"], ["mdy", "12/31/2024"], ["ymd", "2024-12-31"]]);

/** @param {FileImport} file @param {(changes: Partial<Reading>) => void} change */
export function readingFields(file, change) {
  const { reading, kind } = file;
  const isText = kind === "text";
  /** @param {string} label @param {[string, string][]} options @param {"encoding" | "delimiter" | "decimal" | "dates" | "sheet"} field */
  const choice = (label, options, field) => {
    const value = reading[field];
    const all = options.some(([each]) => each === value) ? options : [...options, /** @type {[string, string]} */ ([value, value])];
    return h("label", {}, label, h("select", { "aria-label": label,
      onchange: (/** @type {Event} */ event) => change({ [field]: /** @type {HTMLSelectElement} */ (event.target).value }) },
      all.map(([each, text]) => h("option", { value: each, selected: each === value }, visible(text)))));
  };
  /** @param {string} label @param {"header" | "trims"} field */
  const check = (label, field) => h("label", { class: "check" }, h("input", { type: "checkbox", "aria-label": label, checked: reading[field],
    onchange: (/** @type {Event} */ event) => change({ [field]: /** @type {HTMLInputElement} */ (event.target).checked }) }), label);
  const words = reading.nulls.filter(Boolean).join(" ");
  return h("fieldset", { class: "import-reading" }, h("legend", {}, "How it is read"),
    isText ? [choice("Encoding", ENCODINGS, "encoding"), choice("Delimiter", DELIMITERS, "delimiter")] : null,
    file.sheets.length > 1 ? choice("Sheet", file.sheets.map((each) => [each, each]), "sheet") : null,
    isText ? choice("Numbers", DECIMALS, "decimal") : null,
    kind === "parquet" ? null : [
      choice("Dates", DATES, "dates"),
      h("label", {}, "NULL words", h("input", { "aria-label": "NULL words", value: words, autocomplete: "off", spellcheck: "false", size: "8",
        onchange: (/** @type {Event} */ event) => change({ nulls: [...new Set(["", ...(/** @type {HTMLInputElement} */ (event.target).value).split(/\s+/)])].slice(0, 20) }) })),
      check("First line has the names", "header"),
    ],
    isText ? check("Leave out spaces beside delimiters", "trims") : null,
    file.note ? h("p", { class: "note" }, visible(file.note)) : null,
    file.is_order_sure ? null : h("p", { class: "doubt" }, icon("warning"), " No date tells which number is the day: see whether Dates are right."));
}
