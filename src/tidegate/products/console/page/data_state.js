/** What the parts of Data share: the sources, the tabs, and which tab is in front. */

import { ApiError, errorText, get, post } from "./api.js";
import { batch, computed, signal } from "./signals.js";
import { go, route, say, session, tell } from "./state.js";

/** @typedef {import("./data_contract.js").DataSource} DataSource */
/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./data_contract.js").TabEvent} TabEvent */

/** @param {string} id */
const address = (id) => `#/data?tab=${encodeURIComponent(id)}`;
/** @param {string} id */
const path = (id) => `data/tabs/${encodeURIComponent(id)}`;

class DataState {
  sources = signal(/** @type {DataSource[]} */ ([]));
  tabs = signal(/** @type {DataTab[]} */ ([]));
  loaded = signal(false);
  error = signal("");
  /** The tab that the address names. */
  active = computed(() => (route.value.page === "data" ? route.value.query.get("tab") ?? "" : ""));
  /** @type {Set<string>} tabs that hold what was not sent yet */
  #edited = new Set();
  /** @type {Set<string>} tabs that were closed while all were read */
  #dropped = new Set();
  /** @type {ReadonlyMap<string, DataSource>} */
  #byName = new Map();
  #page = /** @type {string | undefined} */ (undefined);

  async load() {
    if (this.#page !== session.peek()?.page) this.#clear();
    this.#dropped.clear();
    try {
      const [{ sources }, { tabs }] = await Promise.all([get("data/sources"), get("data/tabs")]);
      batch(() => {
        this.#byName = new Map(sources.map((/** @type {DataSource} */ each) => [each.name, each]));
        this.sources.value = sources;
        this.tabs.value = inOrder(tabs.filter((/** @type {DataTab} */ each) => !this.#dropped.has(each.id)));
        this.loaded.value = true;
        this.error.value = "";
      });
    } catch (error) {
      this.error.value = errorText(error);
    }
  }

  /** Another session begins with nothing of the one before. */
  #clear() {
    this.#page = session.peek()?.page;
    this.#edited.clear();
    batch(() => {
      this.sources.value = [];
      this.tabs.value = [];
      this.loaded.value = false;
      this.error.value = "";
    });
  }

  /** @param {string} name @returns {import("./contract.js").SourceLook} */
  source(name) {
    void this.sources.value;
    return this.#byName.get(name) ?? { name, color: 0 };
  }

  /** @param {string} id */
  tab(id) {
    return this.tabs.value.find((each) => each.id === id);
  }

  /** The tab that was in front last. */
  get last() {
    return [...this.tabs.value].sort((one, other) => other.focused_at - one.focused_at)[0];
  }

  /** @param {DataTab} tab */
  put(tab) {
    const known = this.tabs.peek().find(({ id }) => id === tab.id);
    if (known && known.version > tab.version) return;
    const rest = this.tabs.peek().filter(({ id }) => id !== tab.id).map((each) => (
      tab.is_active && each.window === tab.window && each.is_active ? { ...each, is_active: false } : each));
    this.tabs.value = inOrder([...rest, tab]);
  }

  /** What a reply says of a tab, unless it was closed meanwhile. @param {DataTab} tab */
  #replace(tab) {
    if (this.tabs.peek().some(({ id }) => id === tab.id)) this.put(tab);
  }

  /** Take a tab out, and show the one beside it if it was in front. @param {string} id */
  drop(id) {
    this.#dropped.add(id);
    const tabs = this.tabs.peek();
    const at = tabs.findIndex((each) => each.id === id);
    if (at < 0) return;
    const next = tabs[at + 1] ?? tabs[at - 1];
    const shown = this.active.peek() === id;
    this.#edited.delete(id);
    this.tabs.value = tabs.filter((each) => each.id !== id);
    if (shown) go(next ? address(next.id) : "#/data", { replace: true });
  }

  /** @param {string} id @param {boolean} edited */
  setEdited(id, edited) {
    if (edited) this.#edited.add(id);
    else this.#edited.delete(id);
  }

  /** @param {string} id */
  isEdited(id) {
    return this.#edited.has(id);
  }

  /** @param {Place} place @param {string} table
   * @param {{ replace?: boolean, before?: (tab: DataTab) => void }} [options] `before` it is shown */
  openTable(place, table, options) {
    return this.#open({ ...place, kind: "table", table }, options);
  }

  /** @param {Place} place @param {string} [text] @param {string} [title] */
  openQuery(place, text = "", title) {
    return this.#open({ ...place, kind: "query", text, ...(title ? { title } : {}) });
  }

  /** @param {import("./data_contract.js").TabKind} kind @param {Place} place @param {string} [table] */
  openView(kind, place, table) {
    return this.#open({ ...place, kind, ...(table ? { table } : {}) });
  }

  /** @param {object} body @param {{ replace?: boolean, before?: (tab: DataTab) => void }} [options]
   * @returns {Promise<DataTab | null>} */
  async #open(body, options) {
    return this.#try(async () => {
      const tab = /** @type {DataTab} */ (await post("data/tabs", body));
      options?.before?.(tab);
      this.put(tab);
      go(address(tab.id), options);
      return tab;
    });
  }

  /** Show a tab. @param {string} id @param {{ replace?: boolean }} [options] */
  show(id, options) {
    go(address(id), options);
  }

  /** Say which tab is in front, so that agents and other pages know. @param {string} id */
  async focus(id) {
    await post(`${path(id)}/focus`, {}).then((tab) => this.#replace(tab), (error) => {
      if (error instanceof ApiError && error.status === 404) this.drop(id);
    });
  }

  /** @param {string} id */
  async close(id) {
    await this.#try(async () => {
      await post(`${path(id)}/close`, {}).catch((error) => {
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      });
      this.drop(id);
    });
  }

  /** Open the tab that was closed last. */
  async reopen() {
    await this.#try(async () => {
      const tab = await post("data/tabs/reopen", {}).catch((error) => {
        if (!(error instanceof ApiError && error.status === 404)) throw error;
        tell("No tab was closed.");
      });
      if (!tab) return;
      this.put(tab);
      go(address(tab.id));
    });
  }

  /** Change a tab; false when another page has changed it meanwhile, and its state is shown now.
   * @param {string} id @param {{ text?: string, title?: string, position?: number, chart?: Record<string, unknown> | null }} changes */
  async write(id, changes) {
    const known = this.tabs.peek().find((each) => each.id === id);
    if (!known) return false;
    try {
      this.#replace(await post(path(id), { ...changes, version: known.version }));
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      this.tabs.value = inOrder((await get("data/tabs")).tabs);
      return false;
    }
  }

  /** Put a tab between others. @param {string} id @param {number} to its place among the others */
  async move(id, to) {
    const others = this.tabs.peek().filter((each) => each.id !== id);
    const at = Math.max(0, Math.min(to, others.length));
    const [before, after] = [others[at - 1], others[at]];
    const position = !before ? (after?.position ?? 1) - 1 : !after ? before.position + 1
      : (before.position + after.position) / 2;
    await this.#try(() => this.write(id, { position }));
  }

  /** @param {string} id @param {number} by -1 for one to the left */
  async moveBy(id, by) {
    const at = this.tabs.peek().findIndex((each) => each.id === id);
    if (at < 0 || at + by < 0 || at + by >= this.tabs.peek().length) return;
    await this.move(id, at + by);
    say(`Tab ${at + by + 1} of ${this.tabs.peek().length}`);
  }

  /** @param {string} id @param {string} title */
  async rename(id, title) {
    await this.#try(() => this.write(id, { title }));
  }

  /** @template T @param {() => Promise<T>} work @returns {Promise<T | null>} */
  async #try(work) {
    try {
      const result = await work();
      this.error.value = "";
      return result;
    } catch (error) {
      this.error.value = errorText(error);
      return null;
    }
  }
}

/** @param {DataTab[]} tabs */
const inOrder = (tabs) => [...tabs].sort((one, other) =>
  one.position - other.position || one.opened_at - other.opened_at);

export const data = new DataState();
