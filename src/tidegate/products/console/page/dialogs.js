/** Dialogs: a passphrase, a word to the agent, the keys. Each is modal and answers with a value. */

import { h } from "./dom.js";
import { singleKeys, tell } from "./state.js";
import { prose } from "./text.js";

/** @typedef {import("./dom.js").Child} Child */

/** Whether a dialog is open: keys belong to it then. */
export const dialogIsOpen = () => document.querySelector("dialog[open]") !== null;

let count = 0;

/** Show a dialog; resolves with what `read` gives on its button, or null when it was left.
 * @template T
 * @param {{ title: string, body: Child, action: string, back?: string, kind?: string,
 *   read: () => T | null, signal?: AbortSignal }} options @returns {Promise<T | null>} */
export function ask({ title, body, action, back = "Cancel", kind = "primary", read, signal }) {
  const id = `dialog-${(count += 1)}`;
  return new Promise((resolve) => {
    /** @param {T | null} value */
    const leave = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    const accept = () => {
      const value = read();
      if (value !== null) leave(value);
    };
    const form = h("form", {
      onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), accept()),
    },
      h("h2", { id }, title),
      h("div", { class: "dialog-body" }, body),
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "quiet", onclick: () => leave(null) }, back),
        h("button", { type: "submit", class: kind }, action)));
    const dialog = h("dialog", {
      "aria-labelledby": id,
    }, form);
    signal?.addEventListener("abort", () => leave(null), { once: true });
    leaveByEscape(dialog, () => leave(null));
    document.body.append(dialog);
    dialog.showModal();
    // Where nothing must be typed, Enter does what was asked for, unless it takes something away.
    const first = dialog.querySelector("input, textarea, select") ??
      dialog.querySelector(kind === "danger" ? ".quiet" : "[type=submit]");
    begin(first);
  });
}

const TEXTS = "input:not([type=checkbox], [type=radio], [type=file], [type=password]), textarea";

/** Escape leaves a dialog; a form of several texts, once one was typed, by the second one alone.
 * @param {HTMLDialogElement} dialog @param {() => void} leave */
export function leaveByEscape(dialog, leave) {
  let typed = false;
  dialog.addEventListener("input", ({ target }) => (typed ||= /** @type {Element} */ (target).matches(TEXTS)));
  dialog.addEventListener("cancel", (event) => {
    if (event.target !== dialog) return;
    event.preventDefault();
    if (!typed || dialog.querySelectorAll(TEXTS).length < 2) leave();
    else tell("Escape once more drops what was typed.");
    typed = false;
  });
}

/** Give a field the focus, with the text that it has selected: at once, so that no letter is lost that is typed.
 * @param {Element | null} field */
export function begin(field) {
  if (field instanceof HTMLElement) field.focus();
  if (field instanceof HTMLInputElement && field.type === "text") field.select();
}

/** Something went wrong while a dialog was answered: say it in the next one. @param {string} text */
export const problem = (text) => (text ? h("p", { class: "error", role: "alert" }, prose(text)) : null);

/** @param {{ title: string, why: Child, action: string, error?: string, kind?: string,
 *   signal?: AbortSignal }} options @returns {Promise<string | null>} */
export function askPassphrase({ title, why, action, error = "", kind, signal }) {
  const input = h("input", {
    type: "password", id: "passphrase", autocomplete: "current-password", required: true,
    spellcheck: "false",
  });
  return ask({
    title, action, kind, signal,
    read: () => input.value || null,
    body: [
      h("p", {}, why), problem(error),
      h("label", { for: "passphrase" }, "Your passphrase"), input,
    ],
  });
}

/** @param {AbortSignal} signal @param {string} reader who reads it, empty for the person who asked
 * @returns {Promise<string | null>} */
export function askReason(signal, reader) {
  const input = h("textarea", {
    id: "word", maxlength: "500", rows: "3", "aria-describedby": "word-note",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      input.form?.requestSubmit();
    },
  });
  return ask({
    title: "Deny", action: "Deny", kind: "danger", signal,
    read: () => input.value.trim(),
    body: [
      h("label", { for: "word" }, `A word to ${reader || "the one who asks"} (may be empty)`), input,
      h("p", { id: "word-note", class: "note" },
        `${reader ? "The agent" : "The one who asks"} reads it. Up to 500 characters. Enter denies.`),
    ],
  });
}

const KEYS = [
  ["j, k", "next and previous question"],
  ["a, then Enter", "allow once"],
  ["d", "deny, with a word to the agent"],
  ["u", "put the rows back, after a change"],
  ["Ctrl K", "go to a page or a question, or do something"],
  ["Escape", "close, or take the a back"],
  ["?", "this list"],
];
const DATA_KEYS = [
  ["/", "search the tables of all sources"],
  ["Alt PgDn, PgUp", "next and previous tab"],
  ["Alt W", "close the tab; with Shift: open it again"],
  ["Alt Shift PgDn, PgUp", "move the tab"],
  ["F2", "on a tab: name it"],
  ["Shift F10", "what can be done with a tab, a table or a value"],
  ["Alt O", "the saved queries"],
  ["Alt L", "copy the link of the table, or of the saved query"],
  ["Enter", "open a value; in the head: sort"],
  ["Ctrl Enter", "go to the row that a value refers to"],
  ["Ctrl C", "copy the chosen cells"],
  ["Shift ←, →", "choose cells; in the head: width of the column"],
];

/** @param {string[][]} keys */
const keyList = (keys) => h("dl", { class: "keys" },
  keys.map(([key, does]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, does))));

export function showKeys() {
  const toggle = h("input", { type: "checkbox", id: "single", checked: singleKeys.value === "on" });
  return ask({
    title: "Keys", action: "Done",
    read: () => ((singleKeys.value = toggle.checked ? "on" : "off"), true),
    body: [
      keyList(KEYS), h("h3", {}, "In Data"), keyList(DATA_KEYS),
      h("label", { class: "check" }, toggle, "Single letters are keys"),
    ],
  });
}
