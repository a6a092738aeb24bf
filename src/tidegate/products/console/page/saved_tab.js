/** The saved query that a query tab holds: what was changed in it since, saving, and its link. */

import { ApiError, errorText, get, post } from "./api.js";
import { data } from "./data_state.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { queryLink } from "./links.js";
import { queryPath, saved } from "./saved_state.js";
import { computed, effect, signal } from "./signals.js";
import { say, session, tell } from "./state.js";
import { tabName } from "./tab_names.js";
import { isolated, prose } from "./text.js";

/** @typedef {import("./saved_contract.js").QueryContent} QueryContent */
/** @typedef {import("./saved_contract.js").QueryParameter} QueryParameter */
/** @typedef {import("./saved_contract.js").QueryText} QueryText */
/** @typedef {import("./saved_contract.js").SavedQuery} SavedQuery */

/** @param {string} text */
const plain = (text) => text.replace(/\r\n?/g, "\n");

/** The content of a version, or null where it is no longer kept. @param {string} id @param {number} version
 * @returns {Promise<QueryContent | null>} */
async function contentOf(id, version) {
  try {
    return (await get(`${queryPath(id)}?version=${version}`)).content;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

export class TabSaved {
  /** What the tab's text began with. */
  base = signal(/** @type {QueryContent | null} */ (null));
  problem = signal("");
  /** The chart that is saved with the text. */
  chart;
  found;
  #id;
  #tab;
  #editor;
  #names;

  /** @param {import("./signals.js").Signal<import("./data_contract.js").DataTab>} tab
   * @param {import("./editor.js").Editor} editor @param {() => string[]} names of the text's parameters
   * @param {import("./signals.js").Signal<import("./chart_contract.js").ChartSpec | null>} chart of the tab */
  constructor(tab, editor, names, chart) {
    this.chart = chart;
    this.#tab = tab;
    this.#id = tab.peek().id;
    this.#editor = editor;
    this.#names = names;
    this.found = computed(() => saved.ofTab(this.#id));
    void saved.load();
    const version = computed(() => (this.found.value ? `${this.found.value.held.query} ${this.found.value.held.version}` : ""));
    effect(() => {
      if (version.value) void this.#readBase();
    });
  }

  async #readBase() {
    const found = this.found.peek();
    if (!found || this.base.peek()?.version === found.held.version) return;
    try {
      this.#setBase(await contentOf(found.query.id, found.held.version));
    } catch (error) {
      this.problem.value = errorText(error);
    }
  }

  /** @param {QueryContent | null} content */
  #setBase(content) {
    this.base.value = content;
  }

  /** @param {string} name @returns {QueryParameter | undefined} */
  parameter(name) {
    return this.base.value?.parameters.find((each) => each.name === name);
  }

  /** The declared types of parameters. @returns {Record<string, string> | null} */
  get types() {
    const all = this.base.peek()?.parameters ?? [];
    return all.length ? Object.fromEntries(all.map(({ name, type }) => [name, type])) : null;
  }

  /** Whether the text is another one than the saved one. */
  get edited() {
    const { text, chart } = this.base.value ?? { text: "", chart: null };
    return this.#editor.text.value !== plain(text) || JSON.stringify(this.chart.value) !== JSON.stringify(chart);
  }

  noteRun() {
    void saved.noteRun(this.#id);
  }

  get #content() {
    const known = this.base.peek()?.parameters ?? [];
    const parameters = this.#names().map((name) => known.find((each) => each.name === name) ??
      { name, type: "text", description: "", default: null });
    return { text: this.#editor.text.peek(), parameters, chart: this.chart.peek() };
  }

  /** @param {() => Promise<void>} work */
  async #try(work) {
    this.problem.value = "";
    try {
      await work();
    } catch (error) {
      this.problem.value = errorText(error);
    }
    if (document.activeElement === document.body) this.#editor.area.focus();
  }

  /** Save the text: as a new version of what the tab holds, or else under a name. */
  async save() {
    await this.#try(async () => {
      await saved.load();
      const query = this.found.peek()?.query;
      if (query?.may_change) await this.#write(query, {});
      else await this.#saveNew(query);
    });
  }

  /** Change what is saved beside the text; the text is saved with it. */
  async details() {
    await this.#try(async () => {
      const query = this.found.peek()?.query;
      if (!query) return;
      const filled = await this.#ask(query, `Details of ${query.name}`, "");
      if (filled) await this.#write(query, filled);
    });
  }

  /** @param {SavedQuery | undefined} query the one that the text began with @param {string} title @param {string} error */
  async #ask(query, title, error) {
    const [{ askDetails }, { foldersOf }] = await Promise.all([import("./saved_form.js"), import("./saved_list.js")]);
    const { source } = this.#tab.peek();
    const filled = query ?? { name: tabName(this.#tab.peek()), folder: "", description: "", shared_with: /** @type {const} */ ("") };
    const parameters = /** @type {QueryParameter[]} */ (this.#content.parameters);
    return askDetails({ title, source, error, folders: foldersOf(source), names: this.#names(), filled: { ...filled, parameters } });
  }

  /** @param {SavedQuery | undefined} query whose copy it is */
  async #saveNew(query) {
    const { source, database, schema } = this.#tab.peek();
    // A copy is shared with no one until its owner says so.
    /** @type {SavedQuery | undefined} */
    let from = query && { ...query, name: `${query.name} (copy)`, shared_with: "" };
    let error = "";
    for (;;) {
      const filled = await this.#ask(from, query ? `Save a copy of ${query.name}` : "Save the query", error);
      if (!filled) return;
      try {
        await this.#saved(await post("queries", { source, database, schema, ...this.#content, ...filled }));
        return;
      } catch (caught) {
        if (!(caught instanceof ApiError)) throw caught;
        error = errorText(caught);
        from = { .../** @type {SavedQuery} */ (from), ...filled };
      }
    }
  }

  /** Write over the version that this text began with: another's text is never lost unseen.
   * @param {SavedQuery} query @param {object} fields */
  async #write(query, fields) {
    const base = this.found.peek()?.held.version ?? 0;
    let version = query.text_version > base ? base : query.version;
    for (;;) {
      try {
        await this.#saved(await post(queryPath(query.id), { ...this.#content, ...fields, version }));
        return;
      } catch (caught) {
        if (!(caught instanceof ApiError) || caught.status !== 409) throw caught;
        const now = /** @type {QueryText} */ (caught.body.query);
        saved.put(now);
        if (now.content.version > base && now.version !== version) {
          const { askDifference } = await import("./saved_versions.js");
          const sure = await askDifference({
            title: `${now.content.by} has changed this query`, before: now.content.text, after: this.#content.text,
            action: "Save mine as the newest version", kind: "danger",
          });
          if (!sure) return;
        }
        version = now.version;
      }
    }
  }

  /** @param {QueryText} query */
  async #saved(query) {
    this.#setBase(query.content);
    await saved.attach(this.#id, query);
    say(`${query.name} is saved as version ${query.content.version}.`);
  }

  /** Whether another person has changed the text since this one ran or opened it, and since which version. */
  get changed() {
    const found = this.found.value;
    if (!found) return null;
    const { query, held } = found;
    const since = query.ran ?? held.version;
    if (query.text_by === session.peek()?.operator.name || query.text_version <= Math.min(since, held.version)) return null;
    return { by: query.text_by || "someone", since: Math.min(since, held.version), ran: query.ran !== null };
  }

  /** Show what was changed; the new text is taken on demand. */
  async compare() {
    await this.#try(async () => {
      const [found, changed] = [this.found.peek(), this.changed];
      if (!found || !changed) return;
      const { query } = found;
      const [before, now, { askDifference }] = await Promise.all([
        contentOf(query.id, changed.since), get(queryPath(query.id)), import("./saved_versions.js")]);
      const takes = this.#editor.text.peek() !== plain(now.content.text);
      const sure = await askDifference({
        title: `What ${changed.by} has changed`, before: before?.text ?? "", after: now.content.text,
        action: takes ? "Take the new text" : "Done",
      });
      if (!sure) return;
      const { length } = this.#editor.text.peek();
      if (takes) this.#editor.replace({ from: 0, to: length }, plain(now.content.text), { from: 0, to: 0 });
      this.#setBase(now.content);
      await data.write(this.#id, { chart: now.content.chart });
      await saved.attach(this.#id, now);
    });
  }

  async versions() {
    await this.#try(async () => {
      const query = this.found.peek()?.query;
      if (!query) return;
      const { chooseVersion } = await import("./saved_versions.js");
      const chosen = await chooseVersion(query.id);
      if (!chosen) return;
      const now = await post(`${queryPath(query.id)}/restore`, chosen);
      const { length } = this.#editor.text.peek();
      this.#editor.replace({ from: 0, to: length }, plain(now.content.text), { from: 0, to: 0 });
      await data.write(this.#id, { chart: now.content.chart });
      await this.#saved(now);
    });
  }

  async copyLink() {
    const { copyLink } = await import("./link_copy.js");
    const query = this.found.peek()?.query;
    if (query) await copyLink(queryLink(query.id));
    else tell("Save the query first: a link names it, and never holds its text.");
  }
}

/** @param {TabSaved} held */
export function savedLine(held) {
  /** @param {string} label @param {() => Promise<void>} work */
  const button = (label, work) => h("button", { class: "small quiet", onclick: () => void work() }, label);
  const edited = computed(() => held.base.value !== null && held.edited);
  return () => {
    const { problem, found } = held;
    const failed = problem.value ? h("p", { class: "error", role: "alert" }, prose(problem.value)) : null;
    if (!found.value) return failed;
    const { query } = found.value;
    return [failed, h("div", { class: "saved-line", role: "group", "aria-label": "Saved query" },
      icon("save"), h("span", { class: "saved-name" }, query.folder ? h("span", { class: "note" }, isolated(query.folder), " / ") : null, isolated(query.name)),
      h("span", { class: "note" }, () => `version ${found.value?.held.version ?? ""}${edited.value ? ", edited" : ""}`),
      h("span", { role: "status", class: "saved-changed" }, () => {
        const { changed } = held;
        return changed ? ["Changed by ", isolated(changed.by), changed.ran ? " since you ran it. " : " since you opened it. "] : null;
      }),
      () => (held.changed ? button("Difference …", () => held.compare()) : null),
      query.may_change ? button("Details …", () => held.details()) : null,
      button("Versions …", () => held.versions()), button("Copy link", () => held.copyLink()))].filter(Boolean);
  };
}
