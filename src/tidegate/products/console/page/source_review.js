/** What a change of a source comes to: the rights of every caller before and after, the command that
 * does the same, or the lines to change in the settings file. */

import { form, passphraseField } from "./access_forms.js";
import { h } from "./dom.js";
import { tableBox } from "./rows.js";
import { counted, isolated, visible } from "./text.js";

/** @typedef {import("./source_contract.js").Compared} Compared */
/** @typedef {import("./source_contract.js").Rights} Rights */
/** @typedef {import("./source_contract.js").SourcePreview} SourcePreview */

const WORDS = { allow: "allowed", masked: "masked", ask: "asks", deny: "no" };

/** Show it, and do it on the button; resolves with what `send` gives, or null.
 * @template T
 * @param {{ title: string, action: string, preview: Partial<SourcePreview> & { matrix: Compared, command: string },
 *   opens: boolean, passphrase: boolean, send: (given: { passphrase: string, anyway: boolean }) => Promise<T> }} options
 * @returns {Promise<T | null>} */
export function review({ title, action, preview, opens, passphrase, send }) {
  const typed = passphrase ? passphraseField() : null;
  const anyway = h("input", { type: "checkbox", id: "anyway" });
  return form({
    title, action,
    body: [
      preview.widens?.length ? h("p", { class: "notice" }, "This grants more: ",
        preview.widens.map((name, index) => [index ? ", " : "", h("code", {}, name)]), ".") : null,
      comparison(preview.matrix),
      command(preview.command),
      opens ? h("label", { class: "check", for: "anyway" }, anyway, "Save it although it does not open now") : null,
      typed?.node ?? null,
    ],
    send: () => send({ passphrase: typed?.read() ?? "", anyway: anyway.checked }),
  });
}

/** The lines to change in the settings file. @param {string} name @param {SourcePreview} preview */
export const showPatch = (name, preview) => form({
  title: `Lines for ${name}`, action: "Done", send: () => Promise.resolve(true),
  body: [h("p", {}, "This source is in the settings file, and is changed there. The server follows the file."),
    h("pre", { class: "patch", tabindex: "0", role: "region", "aria-label": "Lines to change" }, visible(preview.patch)),
    comparison(preview.matrix)],
});

/** The same at the command line. @param {string} text */
export const command = (text) => (text ? h("p", { class: "note command" }, "The same at the command line: ",
  h("code", {}, visible(text))) : null);

/** @param {Compared} matrix */
export function comparison({ verbs, rows, total, changed }) {
  const shown = rows.filter((row) => row.changed);
  const rest = total - changed;
  return h("div", { class: "part" }, h("h3", {}, "What each caller may do"),
    shown.length ? tableBox("What each caller may do, before and after", h("table", { class: "records compared" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Caller"),
        verbs.map(({ label }) => h("th", { scope: "col" }, visible(label))), h("th", { scope: "col" }, "Hidden"))),
      h("tbody", {}, shown.map(({ caller, before, after }) => h("tr", {},
        h("th", { scope: "row" }, isolated(caller.name), h("span", { class: "note" }, ` ${caller.kind}`)),
        problemOf(before) || problemOf(after)
          ? h("td", { colspan: String(verbs.length), class: "note" }, visible(problemOf(after) || problemOf(before)))
          : verbs.map((_, index) => cell(before?.cells?.[index]?.kind, after?.cells?.[index]?.kind)),
        hidden(before, after)))))) : null,
    h("p", { class: "note" }, shown.length
      ? rest ? `${counted(rest, "other caller")} may do what they may do now.` : ""
      : "No caller may do more or less by it."),
    changed > shown.length ? h("p", { class: "note" }, `${counted(changed - shown.length, "more change")} not shown here.`) : null);
}

/** @param {Rights} rights */
const problemOf = (rights) => rights?.problem ?? "";

/** @param {keyof typeof WORDS | undefined} was @param {keyof typeof WORDS | undefined} now */
function cell(was, now) {
  const word = (/** @type {keyof typeof WORDS | undefined} */ kind) => (kind
    ? h("span", { class: `v-${kind}` }, WORDS[kind]) : h("span", { class: "v-deny" }, "no"));
  if ((was ?? "deny") === (now ?? "deny")) return h("td", { class: "same" }, word(now));
  return h("td", { class: "change" }, h("del", { class: "old" }, word(was)), " → ", h("ins", { class: "new" }, word(now)));
}

/** @param {Rights} before @param {Rights} after */
function hidden(before, after) {
  const [was, now] = [before?.hidden ?? [], after?.hidden ?? []];
  return h("td", {},
    was.filter((each) => !now.includes(each)).map((each) => h("p", {}, h("del", { class: "old" }, visible(each)))),
    now.map((each) => h("p", {}, was.includes(each) ? visible(each) : h("ins", { class: "new" }, visible(each)))));
}
