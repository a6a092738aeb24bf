/** The fields of a source: each declared setting as people type it, and what of it changes. */

import { labelled, select } from "./access_forms.js";
import { h } from "./dom.js";
import { ApiError } from "./api.js";

/** @typedef {import("./source_contract.js").DeclaredSetting} DeclaredSetting */
/** @typedef {{ node: Node, read: () => any }} Field */

const MASK = /^([^={]+?)(?:=(nothing|hash|partial))?$/;

/** The settings as fields, by their groups; `read` gives those that were changed.
 * @param {DeclaredSetting[]} declared @param {Record<string, any>} given @param {boolean} open */
export function settingFields(declared, given, open) {
  const groups = [...new Set(declared.map(({ group }) => group))];
  const fields = new Map(declared.map((setting) => [setting.name, fieldOf(setting, given[setting.name])]));
  const nodes = groups.map((group) => {
    const own = declared.filter((setting) => setting.group === group);
    return h("details", { class: "settings", open: open && group === groups[0] }, h("summary", {}, sentenceCase(group)),
      own.map(({ name }) => fields.get(name)?.node ?? null));
  });
  const read = () => {
    /** @type {Record<string, any>} */
    const changed = {};
    for (const [name, field] of fields) {
      const value = field.read();
      if (value !== undefined) changed[name] = value;
    }
    return changed;
  };
  return { nodes, read };
}

/** @param {string} text */
const sentenceCase = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** @param {string} name */
const label = (name) => sentenceCase(name.replaceAll("_", " "));

/** A field; it reads undefined where nothing was changed. @param {DeclaredSetting} setting @param {any} value
 * @returns {Field} */
function fieldOf(setting, value) {
  const id = `setting-${setting.name}`;
  if (setting.name === "run_as") return runAsField(id, setting, value);
  if (setting.form === "words") {
    const input = select(id, setting.words.map((word) => [word, word]), value);
    return { node: labelled(id, label(setting.name), input, `${sentenceCase(setting.meaning)}.`),
      read: () => (input.value === value ? undefined : input.value) };
  }
  const [write, parse] = forms[setting.name] ?? (setting.form === "entries" ? forms.lines : forms[setting.form]);
  const first = write(value);
  const lines = setting.form === "entries" || setting.name === "options";
  const input = lines
    ? h("textarea", { id, rows: "3", spellcheck: "false", class: "mono", "aria-describedby": `${id}-note` })
    : h("input", { id, spellcheck: "false", autocomplete: "off", "aria-describedby": `${id}-note`,
      inputmode: setting.form === "number" ? "numeric" : "text" });
  input.value = first;
  const note = [setting.meaning, setting.syntax, lines ? "one in each line" : ""].filter(Boolean).join("; ");
  return { node: labelled(id, label(setting.name), input, `${sentenceCase(note)}.`),
    read: () => (input.value === first ? undefined : parse(input.value)) };
}

/** @param {string} text */
const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** @param {Record<string, string>} pairs */
const pairLines = (pairs) => Object.entries(pairs).map(([name, value]) => `${name}=${value}`).join("\n");

/** @param {string} text */
const pairsOf = (text) => Object.fromEntries(linesOf(text).map((line) => {
  const at = line.indexOf("=");
  if (at < 1) throw unfit(line, "NAME=VALUE");
  return [line.slice(0, at), line.slice(at + 1)];
}));

/** @param {string} line @param {string} form */
const unfit = (line, form) => new ApiError(0, { message: `${line.slice(0, 80)} is not of the form ${form}.` });

/** @param {string} line */
function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    throw unfit(line, "JSON");
  }
}

/** Without what is empty: that is what an entry has anyway. @param {Record<string, any>} entry */
const filled = (entry) => Object.fromEntries(Object.entries(entry).filter(([, value]) =>
  value !== null && !(Array.isArray(value) && !value.length)));

/** @param {Record<string, any>} entry @param {string[]} plain @param {string} text */
const lineOf = (entry, plain, text) => {
  const given = filled(entry);
  return Object.keys(given).every((name) => plain.includes(name)) ? text : JSON.stringify(given);
};

/** How settings are written as a text, and read again. @type {Record<string, [(value: any) => string, (text: string) => any]>} */
const forms = {
  text: [(value) => value, (text) => text.trim()],
  number: [(value) => (value === null ? "" : String(value)), (text) => (text.trim() ? Number(text) : null)],
  lines: [(value) => value.join("\n"), linesOf],
  options: [pairLines, pairsOf],
  masks: [
    (value) => value.map((/** @type {any} */ mask) =>
      lineOf(mask, ["column", "show"], `${mask.column}=${mask.show}`)).join("\n"),
    (text) => linesOf(text).map((line) => {
      if (line.startsWith("{")) return parsed(line);
      const found = MASK.exec(line);
      if (!found) throw unfit(line, "TABLE.COLUMN=hash");
      return { column: found[1].trim(), show: found[2] ?? "nothing" };
    }),
  ],
  filters: [
    (value) => value.map((/** @type {any} */ rule) =>
      lineOf(rule, ["table", "where"], `${rule.table}: ${rule.where}`)).join("\n"),
    (text) => linesOf(text).map((line) => {
      if (line.startsWith("{")) return parsed(line);
      const at = line.indexOf(":");
      if (at < 1) throw unfit(line, "TABLE: CONDITION");
      return { table: line.slice(0, at).trim(), where: line.slice(at + 1).trim() };
    }),
  ],
};

/** @param {string} id @param {DeclaredSetting} setting @param {any} value @returns {Field} */
function runAsField(id, setting, value) {
  const role = h("input", { id: `${id}-role`, spellcheck: "false", autocomplete: "off" });
  const roles = h("textarea", { id: `${id}-roles`, rows: "2", spellcheck: "false", class: "mono" });
  const variables = h("textarea", { id: `${id}-variables`, rows: "2", spellcheck: "false", class: "mono" });
  role.value = value?.role ?? "";
  roles.value = pairLines(value?.roles ?? {});
  variables.value = pairLines(value?.variables ?? {});
  const text = () => JSON.stringify([role.value, roles.value, variables.value]);
  const first = text();
  return {
    node: h("fieldset", { class: "picker" }, h("legend", {}, label(setting.name)),
      h("p", { class: "note" }, `${sentenceCase(setting.meaning)}.`),
      labelled(`${id}-role`, "Role of every caller that is not named", role),
      labelled(`${id}-roles`, "Roles by caller: CALLER=ROLE", roles),
      labelled(`${id}-variables`, "Variables: NAME=VALUE", variables)),
    read: () => {
      if (text() === first) return undefined;
      const [one, more, set] = [role.value.trim() || null, pairsOf(roles.value), pairsOf(variables.value)];
      const empty = one === null && !Object.keys(more).length && !Object.keys(set).length;
      return empty ? null : { role: one, roles: more, variables: set };
    },
  };
}
