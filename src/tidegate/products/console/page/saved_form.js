/** The form of a saved query: its name, its place, its parameters, and who may read its text. */

import { data } from "./data_state.js";
import { ask, problem } from "./dialogs.js";
import { h } from "./dom.js";
import { signal } from "./signals.js";
import { isolated, visible } from "./text.js";

/** @typedef {import("./saved_contract.js").Audience} Audience */
/** @typedef {import("./saved_contract.js").ParameterType} ParameterType */
/** @typedef {import("./saved_contract.js").QueryParameter} QueryParameter */
/** @typedef {{ name: string, folder: string, description: string, shared_with: Audience, parameters: QueryParameter[] }} Filled */

const TYPES = /** @type {const} */ (["text", "integer", "decimal", "boolean", "date", "timestamp"]);
const AUDIENCES = /** @type {[Audience, string][]} */ ([
  ["", "Only me"], ["admin", "Admins"], ["approver", "Approvers and admins"], ["viewer", "All who may view it"],
]);
const READERS = { "": "", admin: "Every admin", approver: "Every approver and admin", viewer: "Everyone who may view it," };

/** @param {Audience} shared */
export const audienceText = (shared) => AUDIENCES.find(([value]) => value === shared)?.[1] ?? "";

/** Ask for what is saved with a text.
 * @param {{ title: string, source: string, filled: Filled, folders: readonly string[], error: string, names: readonly string[] }} given
 * `names` are those of the text's parameters @returns {Promise<Filled | null>} */
export function askDetails({ title, source, filled, folders, error, names }) {
  const shared = signal(filled.shared_with);
  const name = h("input", { id: "saved-name", value: filled.name, maxlength: "200", required: true, autocomplete: "off" });
  const folder = h("input", { id: "saved-folder", value: filled.folder, maxlength: "200", list: "saved-folders", autocomplete: "off" });
  const description = h("textarea", { id: "saved-description", rows: "2", maxlength: "4000" }, filled.description);
  const audience = h("select", { id: "saved-shared", "aria-describedby": "saved-shared-note",
    onchange: () => (shared.value = /** @type {Audience} */ (audience.value)) },
  AUDIENCES.map(([value, label]) => h("option", { value, selected: value === filled.shared_with }, label)));
  const parameters = names.map((each) => parameterRow(each, filled.parameters.find((known) => known.name === each)));
  return ask({
    title, action: "Save",
    read: () => (name.value.trim() ? {
      name: name.value.trim(), folder: folder.value.trim(), description: description.value.trim(),
      shared_with: /** @type {Audience} */ (audience.value), parameters: parameters.map(({ read }) => read()),
    } : null),
    body: [
      problem(error),
      h("label", { for: "saved-name" }, "Name"), name,
      h("label", { for: "saved-folder" }, "Folder (may be empty)"), folder,
      h("datalist", { id: "saved-folders" }, folders.map((value) => h("option", { value }))),
      h("label", { for: "saved-description" }, "Description (may be empty)"), description,
      parameters.length ? h("fieldset", { class: "saved-parameters" }, h("legend", {}, "Parameters"), parameters.map(({ node }) => node)) : null,
      h("label", { for: "saved-shared" }, "Who may read its text"), audience,
      h("p", { id: "saved-shared-note", class: () => (shared.value ? "saved-warning" : "note"), "aria-live": "polite" }, () => (shared.value
        ? [READERS[shared.value], " on ", isolated(data.source(source).name), " will read this text and all its versions. ",
          "A password or a name in it is read as well. Running it is a call of theirs, with their own rights."]
        : "No one else learns that it exists.")),
    ],
  });
}

/** @param {string} name @param {QueryParameter | undefined} known */
function parameterRow(name, known) {
  const type = h("select", { "aria-label": `Type of :${name}` },
    TYPES.map((value) => h("option", { value, selected: value === (known?.type ?? "text") }, value)));
  const standard = h("input", { "aria-label": `First value of :${name}`, placeholder: "first value", value: known?.default ?? "",
    autocomplete: "off", spellcheck: "false", dir: "auto" });
  const about = h("input", { "aria-label": `What :${name} is`, placeholder: "what it is", value: known?.description ?? "", maxlength: "400", autocomplete: "off" });
  return {
    node: h("div", { class: "saved-parameter" }, h("code", {}, ":", visible(name)), type, standard, about),
    /** @returns {QueryParameter} */
    read: () => ({ name, type: /** @type {ParameterType} */ (type.value), description: about.value.trim(), default: standard.value || null }),
  };
}
