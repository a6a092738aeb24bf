/** Dialogs of a source: add, change, rename, remove. What was typed stays until it is saved or left. */

import { form, labelled, passphraseField, select, STAY } from "./access_forms.js";
import { ApiError, errorText, post } from "./api.js";
import { h } from "./dom.js";
import { settingFields } from "./source_fields.js";
import { command, review, showPatch } from "./source_review.js";
import { effect, signal } from "./signals.js";
import { tell } from "./state.js";
import { counted, isolated, prose, visible } from "./text.js";

/** @typedef {import("./source_contract.js").ListedSource} ListedSource */
/** @typedef {import("./source_contract.js").SavedSource} SavedSource */
/** @typedef {import("./source_contract.js").SourceListing} SourceListing */
/** @typedef {import("./source_contract.js").SourcePreview} SourcePreview */
/** @typedef {import("./source_contract.js").TriedSource} TriedSource */

const WITH_PASSWORD = /^([a-z][\w+.-]*:\/\/[^\s/?#@:]+):([^\s/?#@$]+)@/i;

/** Add a source, or change one. @param {SourceListing} listing @param {ListedSource | null} source
 * @returns {Promise<SavedSource | null>} */
export function editSource(listing, source) {
  const inFile = source?.from === "settings";
  const first = source ?? { name: "", url: "", version: "", settings: defaults(listing) };
  const name = h("input", { id: "source-name", maxlength: "64", autocomplete: "off", spellcheck: "false" });
  const url = h("input", { id: "source-url", autocomplete: "off", spellcheck: "false", "aria-describedby": "source-url-note" });
  const password = h("input", { id: "source-password", type: "password", autocomplete: "new-password", spellcheck: "false" });
  const place = select("keep-in", [["file", "a file that only the server's account can read"],
    ["keyring", "the keyring of the server's system"]], source?.password || "file");
  url.value = first.url;
  url.addEventListener("input", () => takePassword(url, password));
  const fields = settingFields(listing.declared, first.settings, source !== null);
  const edits = signal(0);
  const draft = () => ({
    name: source?.name ?? name.value.trim(), version: first.version,
    ...(source && url.value === first.url ? {} : { url: url.value.trim() }),
    settings: fields.read(), keep_in: /** @type {"file" | "keyring"} */ (place.value),
  });
  return form({
    title: source ? `Change ${source.name}` : "Add a source",
    action: inFile ? "Show the lines …" : "Look at what changes …",
    onInput: () => (edits.value += 1),
    body: [
      source ? null : labelled("source-name", "Name", name),
      labelled("source-url", "URL", url, "Such as postgresql://user@host/database, without a password."),
      inFile ? null : labelled("source-password", source?.password ? "Another password" : "Password", password),
      inFile ? null : labelled("keep-in", "A password that is typed is kept in", place),
      h("p", { class: "note" }, listing.folders.length
        ? ["Files are opened below ", listing.folders.map((each, index) => [index ? ", " : "", isolated(each)]), "."]
        : ["No file is opened from here: the setting ", h("code", {}, "console.source_folders"), " lists folders."]),
      tryPart(() => ({ ...draft(), password: password.value }), edits, source !== null, () => Boolean(password.value) ||
        !source || url.value !== first.url),
      fields.nodes,
    ],
    send: async () => {
      const wanted = draft();
      const typed = password.value;
      /** @type {SourcePreview} */
      const preview = await post("sources/preview", { ...wanted, with_password: typed !== "" });
      if (source && !preview.names.length && !typed) throw new ApiError(0, { message: "Nothing was changed." });
      if (inFile) {
        await showPatch(source.name, preview);
        return STAY;
      }
      const opens = !source || typed !== "" || preview.names.some((each) => each === "url" || each === "options");
      const saved = await review({
        title: source ? `Change ${source.name}` : `Add ${wanted.name}`, action: source ? "Change it" : "Add it",
        preview, opens, passphrase: preview.passphrase,
        send: (given) => post(source ? "sources/change" : "sources", { ...wanted, ...given, password: typed }),
      });
      if (!saved) return STAY;
      password.value = "";
      return /** @type {SavedSource} */ (saved);
    },
  });
}

/** @param {SourceListing} listing */
const defaults = ({ declared }) => Object.fromEntries(declared.map((setting) =>
  [setting.name, setting.name === "options" ? {} : setting.default]));

/** A password that was pasted with the URL goes into its own field. @param {HTMLInputElement} url
 * @param {HTMLInputElement} password */
function takePassword(url, password) {
  const found = WITH_PASSWORD.exec(url.value);
  if (!found) return;
  try {
    password.value = decodeURIComponent(found[2]);
  } catch {
    password.value = found[2];
  }
  url.value = url.value.replace(WITH_PASSWORD, "$1@");
  tell("The password was put into its own field.");
}

/** The button that opens what was typed, and what was found, until something else is typed.
 * @param {() => object} read @param {import("./signals.js").Signal<number>} edits how often that was changed
 * @param {boolean} saved @param {() => boolean} asks whether it takes the passphrase */
function tryPart(read, edits, saved, asks) {
  const found = signal(/** @type {TriedSource | null} */ (null));
  const error = signal("");
  const opening = signal(false);
  const attempt = async () => {
    if (opening.peek()) return;
    [error.value, found.value, opening.value] = ["", null, true];
    const tried = edits.peek();
    try {
      const answer = asks() ? await askAndTry(read) : await post("sources/try", read());
      if (edits.peek() === tried) found.value = answer;
      else error.value = "It was changed while it was tried: try it again.";
    } catch (caught) {
      error.value = errorText(caught);
    }
    opening.value = false;
  };
  effect(() => {
    void edits.value;
    [error.value, found.value] = ["", null];
  });
  return h("div", { class: "try" },
    h("button", { type: "button", class: "small", "aria-disabled": () => String(opening.value), onclick: () => void attempt() },
      saved ? "Try it" : "Try it …"),
    h("div", { role: "status" },
      () => (opening.value ? h("p", { class: "note" }, "Opening …") : null),
      () => (error.value ? h("p", { class: "error" }, prose(error.value)) : null),
      () => (found.value ? triedView(found.value) : null)));
}

/** @param {() => object} read @returns {Promise<TriedSource | null>} */
function askAndTry(read) {
  const passphrase = passphraseField();
  return form({
    title: "Try it", action: "Open it",
    body: [h("p", {}, "The server opens it once, as your own call, and keeps nothing of it. The try is on record."),
      passphrase.node],
    send: () => post("sources/try", { ...read(), passphrase: passphrase.read() }),
  });
}

/** What was found. @param {TriedSource} tried */
export const triedView = ({ report, message, hint }) => (report ? h("div", { class: "tried" },
  h("p", { class: "finding" }, `It opens: ${counted(report.tables, "table")}, ${counted(report.views, "view")}`,
    report.server_version ? [", ", isolated(report.server_version)] : null, "."),
  [...report.unfit, ...report.warnings].map((each) => h("p", { class: "doubt" }, visible(each))),
  report.risks.map(({ could, remedy }) => h("p", { class: "doubt" }, "Risk: ", visible(could),
    remedy === "none" ? null : ["; to do: ", h("code", {}, visible(remedy))])))
  : h("p", { class: "error" }, prose([message, hint].filter(Boolean).join(" "))));

/** @param {ListedSource} source @returns {Promise<SavedSource | null>} */
export function renameSource(source) {
  const name = h("input", { id: "new-name", maxlength: "64", autocomplete: "off", spellcheck: "false" });
  name.value = source.name;
  const path = `sources/${encodeURIComponent(source.name)}/rename`;
  return form({
    title: `Rename ${source.name}`, action: "Look at what changes …",
    body: [labelled("new-name", "New name", name), h("p", { class: "note" },
      "The lists of tokens follow. Roles of operators, settings files and clients that have the old name do not.")],
    send: async () => {
      const wanted = { version: source.version, to: name.value.trim() };
      const preview = await post(path, { ...wanted, shows: true });
      const saved = await review({
        title: `Rename ${source.name} to ${wanted.to}`, action: "Rename it", preview, opens: false, passphrase: true,
        send: ({ passphrase }) => post(path, { ...wanted, passphrase }),
      });
      return saved === null ? STAY : /** @type {SavedSource} */ (saved);
    },
  });
}

/** @param {ListedSource} source @returns {Promise<SavedSource | null>} */
export const removeSource = (source) => form({
  title: `Remove ${source.name}`, action: "Remove", kind: "danger",
  body: [h("p", {}, "No caller may use ", isolated(source.name), " any more. Its data stays as it is."),
    command(`tidegate source remove ${source.name}`)],
  send: () => post(`sources/${encodeURIComponent(source.name)}/remove`, { version: source.version }),
});
