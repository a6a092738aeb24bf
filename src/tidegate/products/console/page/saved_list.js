/** The saved queries, to be found, opened, renamed, shared, restored, removed and linked to. */

import { ApiError, errorText, post } from "./api.js";
import { ask } from "./dialogs.js";
import { each, h } from "./dom.js";
import { icon } from "./icons.js";
import { copyLink } from "./link_copy.js";
import { queryLink } from "./links.js";
import { askDetails, audienceText } from "./saved_form.js";
import { queryPath, saved } from "./saved_state.js";
import { chooseVersion } from "./saved_versions.js";
import { computed, root, signal } from "./signals.js";
import { say, session } from "./state.js";
import { isolated, prose, timeNode } from "./text.js";

/** @typedef {import("./saved_contract.js").SavedQuery} SavedQuery */

/** The folders of queries on a source. @param {string} source */
export const foldersOf = (source) => [...new Set(saved.queries.peek()
  .filter((query) => query.source === source && query.folder).map(({ folder }) => folder))];

/** @returns {Promise<void>} */
export async function showSaved() {
  if (document.querySelector("dialog[open]")) return;
  void saved.load(true);
  const error = signal("");
  const [dialog, stop] = root(() => build(error, () => {
    dialog.close();
    dialog.remove();
    stop();
  }));
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("input")?.focus();
}

/** @param {import("./signals.js").Signal<string>} error @param {() => void} close */
function build(error, close) {
  const typed = signal("");
  const at = signal(0);
  const found = computed(() => {
    const words = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
    return saved.queries.value.filter(({ folder, name, description, source, owner }) => {
      const text = `${folder} ${name} ${description} ${source} ${owner}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  });
  const current = computed(() => found.value[Math.min(at.value, found.value.length - 1)]);
  /** @param {SavedQuery | undefined} query */
  const open = (query) => {
    if (!query) return;
    close();
    void saved.open(query.id);
  };
  /** @param {(query: SavedQuery) => Promise<void>} work */
  const act = async (work) => {
    const query = current.peek();
    if (!query) return;
    error.value = "";
    try {
      await work(query);
    } catch (caught) {
      error.value = errorText(caught);
    }
    input.focus();
  };
  const input = h("input", {
    type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "saved-list", "aria-autocomplete": "list",
    "aria-label": "Search saved queries", placeholder: "Search saved queries", autocomplete: "off", spellcheck: "false",
    "aria-activedescendant": () => (current.value ? `saved-${current.value.id}` : null),
    oninput: () => {
      typed.value = input.value;
      at.value = 0;
    },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5 }[event.key];
      if (by) at.value = Math.max(0, Math.min(at.peek() + by, found.peek().length - 1));
      else if (event.key === "Enter") open(current.peek());
      else return;
      event.preventDefault();
      document.getElementById(`saved-${current.peek()?.id}`)?.scrollIntoView({ block: "nearest" });
    },
  });
  /** @param {string} label @param {(query: SavedQuery) => Promise<void>} work @param {boolean} [changes] */
  const button = (label, work, changes = false) => h("button", {
    class: "small", disabled: () => !current.value || (changes && !current.value.may_change), onclick: () => void act(work),
  }, label);
  return h("dialog", { class: "history saved", "aria-label": "Saved queries",
    oncancel: (/** @type {Event} */ event) => (event.preventDefault(), close()) },
    h("div", { class: "history-head" }, input),
    () => (error.value || saved.error.value ? h("p", { class: "error", role: "alert" }, prose(error.value || saved.error.value)) : null),
    h("ul", { role: "listbox", id: "saved-list", "aria-label": "Saved queries" },
      each(() => found.value, ({ id }) => id, (query) => h("li", {
        role: "option", id: `saved-${query.peek().id}`, "aria-selected": () => String(current.value?.id === query.value.id),
        onclick: () => (at.value = found.peek().findIndex(({ id }) => id === query.peek().id)),
        ondblclick: () => open(query.peek()),
      }, () => option(query.value)))),
    () => (found.value.length ? null : h("p", { class: "note" }, saved.queries.value.length ? "Nothing found."
      : "Nothing is saved yet. Save the text of a query tab with Ctrl S.")),
    h("div", { class: "dialog-actions saved-actions" },
      h("button", { class: "small primary", disabled: () => !current.value, onclick: () => open(current.peek()) }, "Open"),
      button("Details …", changeDetails, true), button("Versions …", restore), button("Copy link", ({ id }) => copyLink(queryLink(id))),
      button("Delete …", remove, true), h("button", { class: "small quiet", onclick: close }, "Close")));
}

/** @param {SavedQuery} query */
const option = ({ folder, name, description, source, owner, shared_with: shared, changed_at: at }) => [
  h("span", {}, folder ? h("span", { class: "note" }, isolated(folder), " / ") : null, h("strong", {}, isolated(name))),
  description ? h("span", { class: "note" }, isolated(description)) : null,
  h("span", { class: "meta" }, icon("data"), isolated(source),
    owner === session.peek()?.operator.name ? h("span", {}, audienceText(shared)) : h("span", {}, "of ", isolated(owner || "a former operator")),
    timeNode(at)),
];

/** Change name, folder, description and readers, also of what another has changed meanwhile: each of
 * these is shown before it is written. @param {SavedQuery} first */
export async function changeDetails(first) {
  let [query, error] = [first, ""];
  for (;;) {
    const filled = await askDetails({ title: `Details of ${query.name}`, source: query.source, error,
      folders: foldersOf(query.source), names: [], filled: { ...query, parameters: [] } });
    if (!filled) return;
    const { parameters: _, ...fields } = filled;
    try {
      saved.put(await post(queryPath(query.id), { ...fields, version: query.version }));
      say("The query is saved.");
      return;
    } catch (caught) {
      error = errorText(caught);
      if (caught instanceof ApiError && caught.status === 409) query = caught.body.query;
      else query = { ...query, ...fields };
    }
  }
}

/** @param {SavedQuery} query */
export async function restore(query) {
  const chosen = await chooseVersion(query.id);
  if (!chosen) return;
  saved.put(await post(`${queryPath(query.id)}/restore`, chosen));
  say(`Version ${chosen.restores} is the newest again.`);
}

/** @param {SavedQuery} query */
async function remove(query) {
  const sure = await ask({ title: "Delete a saved query", action: "Delete", kind: "danger", read: () => true,
    body: h("p", {}, isolated(query.name), " and all its versions are removed",
      query.shared_with ? ", for everyone who may read it. " : ". ", "Tabs that hold its text keep it.") });
  if (!sure) return;
  await post(`${queryPath(query.id)}/remove`, { version: query.version });
  saved.drop(query.id);
  say("The query is deleted.");
}
