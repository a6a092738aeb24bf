/** The saved queries that this operator may read, and which of them the tabs hold. */

import { ApiError, errorText, get, post } from "./api.js";
import { data } from "./data_state.js";
import { batch, signal } from "./signals.js";
import { listen, session } from "./state.js";

/** @typedef {import("./saved_contract.js").QueryText} QueryText */
/** @typedef {import("./saved_contract.js").SavedQuery} SavedQuery */
/** @typedef {import("./saved_contract.js").SavedQueries} SavedList */
/** What a tab holds: a query, the version that its text began with, and what else is saved with it.
 * @typedef {{ query: string, version: number }} Held */

/** @param {string} id */
export const queryPath = (id) => `queries/${encodeURIComponent(id)}`;

class SavedState {
  queries = signal(/** @type {readonly SavedQuery[]} */ ([]));
  tabs = signal(/** @type {Readonly<Record<string, Held>>} */ ({}));
  error = signal("");
  #page = /** @type {string | undefined} */ (undefined);
  /** @type {Promise<void> | null} */
  #loading = null;

  /** Read the list, once for a session unless it is asked for `again`. @param {boolean} [again] */
  async load(again = false) {
    const page = session.peek()?.page;
    if (this.#page !== page) this.#forget();
    else if (this.#loading && !again) return this.#loading;
    this.#page = page;
    this.#loading = this.#read();
    return this.#loading;
  }

  async #read() {
    try {
      const found = /** @type {SavedList} */ (await get("queries"));
      batch(() => {
        this.queries.value = found.queries;
        this.tabs.value = found.tabs;
        this.error.value = "";
      });
    } catch (error) {
      this.error.value = errorText(error);
      this.#loading = null;
    }
  }

  #forget() {
    batch(() => {
      this.queries.value = [];
      this.tabs.value = {};
    });
  }

  /** @param {string} id */
  query(id) {
    return this.queries.value.find((each) => each.id === id);
  }

  /** What a tab holds; undefined also when the query is gone, or is no longer shared with us.
   * @param {string} tab @returns {{ held: Held, query: SavedQuery } | undefined} */
  ofTab(tab) {
    const held = this.tabs.value[tab];
    const query = held && this.query(held.query);
    return query && { held, query };
  }

  /** A query as the server has it now. @param {SavedQuery} query */
  put(query) {
    const { content: _, ...entry } = /** @type {QueryText} */ (query);
    const rest = this.queries.peek().filter(({ id }) => id !== query.id);
    this.queries.value = [...rest, entry].sort((one, other) =>
      one.folder.localeCompare(other.folder) || one.name.localeCompare(other.name));
  }

  /** @param {string} id */
  drop(id) {
    this.queries.value = this.queries.peek().filter((each) => each.id !== id);
  }

  /** Ask again for one that was changed. @param {string} id */
  async reload(id) {
    try {
      this.put(await get(queryPath(id)));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.drop(id);
    }
  }

  /** @param {string} tab @param {QueryText} query whose text the tab has now */
  async attach(tab, query) {
    const held = { query: query.id, version: query.content.version };
    batch(() => {
      this.put(query);
      this.tabs.value = { ...this.tabs.peek(), [tab]: held };
    });
    await post(`${queryPath(query.id)}/attach`, { tab, version: held.version });
  }

  /** Keep which version was run. @param {string} tab */
  async noteRun(tab) {
    const found = this.ofTab(tab);
    if (!found) return;
    const { query, held } = found;
    this.put({ ...query, ran: held.version });
    await post(`${queryPath(query.id)}/ran`, { version: held.version }).catch(() => {});
  }

  /** Open a query in a tab, unrun. @param {string} id @param {{ replace?: boolean }} [options] */
  async open(id, options) {
    try {
      const { tab, query } = await post(`${queryPath(id)}/open`, {});
      batch(() => {
        this.put(query);
        // A tab that was open keeps its text, and so the version that the text began with.
        if (!this.tabs.peek()[tab.id]) {
          this.tabs.value = { ...this.tabs.peek(), [tab.id]: { query: id, version: query.content.version } };
        }
        data.put(tab);
        data.error.value = "";
      });
      data.show(tab.id, options);
    } catch (error) {
      data.error.value = errorText(error);
    }
  }
}

export const saved = new SavedState();

listen("query", (/** @type {{ id: string, gone: boolean }} */ { id, gone }) => {
  if (gone) saved.drop(id);
  else void saved.reload(id);
});
listen("refreshed", () => void saved.load(true));
