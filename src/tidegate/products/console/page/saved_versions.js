/** What differs between two texts of a saved query, and the versions to go back to. */

import { errorText, get } from "./api.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { queryPath } from "./saved_state.js";
import { effect, root, signal } from "./signals.js";
import { differences } from "./text_diff.js";
import { isolated, prose, timeNode, visible } from "./text.js";

/** @typedef {import("./saved_contract.js").QueryContent} QueryContent */
/** @typedef {import("./saved_contract.js").QueryVersions} QueryVersions */

const NODES = /** @type {const} */ ({ old: "del", new: "ins", same: "span" });
const SIGNS = { old: "- ", new: "+ ", same: "  " };

/** @param {string} before @param {string} after */
export function differenceView(before, after) {
  const lines = differences(before, after);
  return h("pre", { class: "statement difference", dir: "ltr", tabindex: "0", role: "region", "aria-label": "The difference" },
    lines.every(({ kind }) => kind === "same") ? h("span", { class: "note" }, "The texts are the same.\n") : null,
    lines.map(({ kind, text }) => h(NODES[kind], {}, SIGNS[kind], visible(text), "\n")));
}

/** Show two texts and ask whether one takes the place of the other.
 * @param {{ title: string, before: string, after: string, action: string, kind?: string }} shown @returns {Promise<true | null>} */
export const askDifference = ({ title, before, after, action, kind }) => ask({
  title, action, kind, back: "Close", read: () => /** @type {const} */ (true),
  body: [h("p", { class: "note" }, "Lines with - go, lines with + come."), differenceView(before, after)],
});

/** Choose a version to write again. @param {string} id @returns {Promise<{ restores: number, version: number } | null>} */
export async function chooseVersion(id) {
  const found = /** @type {QueryVersions} */ (await get(`${queryPath(id)}/versions`));
  const newest = /** @type {{ content: QueryContent }} */ (await get(queryPath(id))).content;
  const chosen = signal(found.versions[0].version);
  const text = signal(/** @type {string | null} */ (newest.text));
  const error = signal("");
  const [body, stop] = root(() => {
    let asked = new AbortController();
    effect(() => {
      const version = chosen.value;
      asked.abort();
      asked = new AbortController();
      const { signal } = asked;
      text.value = version === newest.version ? newest.text : null;
      if (version !== newest.version) {
        get(`${queryPath(id)}?version=${version}`, signal).then(
          ({ content }) => (text.value = content.text), (caught) => signal.aborted || (error.value = errorText(caught)));
      }
    });
    return h("div", { class: "versions" },
      h("fieldset", {}, h("legend", {}, "Versions, the newest first"), found.versions.map(({ version, by, at }) => h("label", { class: "check" },
        h("input", { type: "radio", name: "saved-version", value: String(version), checked: version === chosen.peek(),
          onchange: () => (chosen.value = version) }),
        h("span", {}, `Version ${version}, by `, isolated(by), ", ", timeNode(at))))),
      () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
      h("h3", {}, () => (chosen.value === newest.version ? "The text" : `From version ${chosen.value} to the newest`)),
      () => (text.value === null ? h("p", { class: "note" }, "Loading …") : differenceView(text.value, newest.text)));
  });
  const restores = await ask({
    title: `Versions of ${found.name}`, action: found.may_change ? "Restore this version" : "Done", body,
    read: () => chosen.peek(),
  });
  stop();
  if (restores === null || !found.may_change || restores === newest.version) return null;
  return { restores, version: found.version };
}
