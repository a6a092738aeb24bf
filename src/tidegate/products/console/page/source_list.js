/** Sources: what the gate opens, and for whom. Admins of all sources change them here. */

import { errorText, get, post, resume } from "./api.js";
import { sourceChip } from "./card.js";
import { h } from "./dom.js";
import { tableBox } from "./rows.js";
import { onEnd, signal } from "./signals.js";
import { editSource, removeSource, renameSource, triedView } from "./source_forms.js";
import { listen, say, session } from "./state.js";
import { counted, isolated, prose, visible } from "./text.js";

/** @typedef {import("./source_contract.js").ListedSource} ListedSource */
/** @typedef {import("./source_contract.js").SavedSource} SavedSource */
/** @typedef {import("./source_contract.js").SourceListing} SourceListing */
/** @typedef {import("./source_contract.js").TriedSource} TriedSource */

export function sourcesView() {
  const listing = signal(/** @type {SourceListing | null} */ (null));
  const error = signal("");
  const notes = signal(/** @type {string[]} */ ([]));
  const tried = signal(/** @type {{ name: string, found: TriedSource } | null} */ (null));
  const load = async () => {
    try {
      listing.value = await get("sources");
      error.value = "";
    } catch (caught) {
      error.value = errorText(caught);
    }
  };
  /** @param {Promise<SavedSource | null>} work @param {string} said */
  const done = async (work, said) => {
    const saved = await work;
    if (!saved) return;
    notes.value = saved.notes;
    tried.value = null; // that was said of what was saved before
    say(said);
    await load();
    const [now, found] = [session.peek(), await resume()];
    if (now) session.value = { ...now, sources: found.sources };
  };
  /** @param {ListedSource} source */
  const attempt = async (source) => {
    tried.value = null;
    error.value = "";
    try {
      const body = { name: source.name, version: source.version };
      tried.value = { name: source.name, found: await post("sources/try", body) };
    } catch (caught) {
      error.value = errorText(caught);
    }
  };
  onEnd(listen("refreshed", () => void load()));
  void load();
  return h("div", { class: "rights" },
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    () => (listing.value || error.value ? null : h("p", { class: "note" }, "Loading …")),
    h("div", { role: "status" },
      () => notes.value.map((each) => h("p", { class: "notice" }, prose(each))),
      () => (tried.value ? h("div", { class: "notice" }, h("h3", {}, isolated(tried.value.name)), triedView(tried.value.found)) : null)),
    () => {
      const found = listing.value;
      return found ? h("div", { class: "part" },
        h("div", { class: "part-head" }, h("h2", {}, "Sources"), h("button", {
          class: "small primary", onclick: () => void done(editSource(found, null), "The source is added."),
        }, "Add a source …")),
        found.sources.length ? table(found, done, attempt) : h("p", { class: "note" }, "There is no source yet."))
        : null;
    });
}

/** @param {SourceListing} listing @param {(work: Promise<SavedSource | null>, said: string) => Promise<void>} done
 * @param {(source: ListedSource) => Promise<void>} attempt */
function table(listing, done, attempt) {
  const sources = [...listing.sources].sort((one, other) => (one.group ?? "").localeCompare(other.group ?? ""));
  return tableBox("Sources", h("table", { class: "records" },
    h("thead", {}, h("tr", {}, ["Source", "URL", "Callers"].map((name) => h("th", { scope: "col" }, name)), h("td", {}))),
    h("tbody", {}, sources.map((source) => {
      const of = () => h("span", { class: "sr" }, ` ${source.name}`);
      const saved = source.from === "state";
      return h("tr", {},
        h("td", {}, sourceChip(source), h("br"), h("span", { class: "note" }, visible(source.engine)),
          source.problem ? h("p", { class: "bad" }, prose(source.problem)) : null),
        h("td", {}, isolated(source.url), source.password ? h("p", { class: "note" }, `Its password is in a ${
          source.password === "file" ? "file of the state" : "keyring"}.`) : null),
        h("td", {}, admits(source)),
        h("td", { class: "actions" },
          h("button", { class: "small", onclick: () =>
            void done(editSource(listing, source), "The source is changed.") }, saved ? "Change …" : "Lines …", of()),
          h("button", { class: "small", onclick: () => void attempt(source) }, "Try", of()),
          saved ? h("button", { class: "small", onclick: () =>
            void done(renameSource(source), "The source is renamed.") }, "Rename …", of()) : null,
          saved ? h("button", { class: "small", onclick: () =>
            void done(removeSource(source), "The source is removed.") }, "Remove …", of())
            : h("p", { class: "note" }, "In the settings file.")));
    }))));
}

/** What callers may do at most, in short. @param {ListedSource} source */
function admits({ settings }) {
  const parts = [`access: ${settings.access}`];
  if (settings.agents !== "allow") parts.push(`agents: ${settings.agents}`);
  if (settings.approval_for !== "nothing") parts.push(`a person approves ${settings.approval_for}`);
  if (settings.masks.length) parts.push(counted(settings.masks.length, "mask"));
  if (settings.filters.length) parts.push(counted(settings.filters.length, "filter"));
  return parts.join(", ");
}
