/**
 * Statements that run, or have run, in each tab. They are kept here by the tab, so that going to
 * another tab and back loses nothing; the rows stay with the server and are loaded when seen.
 */

import { ApiError, errorText, get, post, query } from "./api.js";
import { PagedRows } from "./paged_rows.js";
import { batch, computed, root, signal } from "./signals.js";
import { listen, tell } from "./state.js";

/** @typedef {import("./query_contract.js").DataRun} DataRun */
/** @typedef {import("./data_contract.js").Place} Place */
/** A statement to run, and where it begins in the text.
 * @typedef {{ statement: string, from: number, params: import("./query_contract.js").Params,
 *   types: Record<string, string> | null }} Part */

const POLLS_MS = [60, 120, 200, 300, 500, 800, 1200, 2000];
const OPEN = new Set(["running", "asking"]);
let count = 0;

export class RunItem {
  key = `run-${(count += 1)}`;
  /** @type {import("./signals.js").Signal<DataRun | null>} */
  run = signal(/** @type {DataRun | null} */ (null));
  /** Why the server did not take it, or cannot be asked about it. */
  problem = signal("");
  isCancelling = signal(false);
  /** The rows of its change were put back. */
  undone = signal(false);
  /** The server no longer holds its rows. */
  gone = signal(false);
  began = Date.now();
  rows;
  part;
  place;

  /** @param {Part} part @param {Place} place */
  constructor(part, place) {
    this.part = part;
    this.place = place;
    this.rows = new PagedRows({
      columns: () => this.run.peek()?.columns.length ?? 1,
      load: async (offset, limit, signal) => {
        try {
          return (await get(`${this.path}/rows?${query({ offset, limit })}`, signal)).rows;
        } catch (error) {
          if (error instanceof ApiError && error.status === 410) this.gone.value = true;
          throw error;
        }
      },
    });
  }

  get path() {
    return `data/runs/${encodeURIComponent(this.run.peek()?.id ?? "")}`;
  }

  isOpen = computed(() => !this.problem.value && (this.run.value === null || OPEN.has(this.run.value.state)));

  /** A run as the server has it; one that is over stays over. @param {DataRun} next */
  receive(next) {
    const old = this.run.peek();
    if (old && !OPEN.has(old.state) && OPEN.has(next.state)) return;
    if (old && JSON.stringify(old) === JSON.stringify(next)) return;
    batch(() => {
      this.run.value = next;
      this.rows.count.value = next.row_count;
      if (next.rows_gone) this.gone.value = true;
    });
  }

  /** @param {number} row @param {number} column @param {AbortSignal} signal
   * @returns {Promise<import("./data_contract.js").WholeCell>} */
  cell(row, column, signal) {
    return get(`${this.path}/cell?${query({ row, column })}`, signal);
  }

  /** End it. One that has no name yet is ended as soon as it has. */
  async cancel() {
    if (!this.isOpen.peek() || this.isCancelling.peek()) return;
    this.isCancelling.value = true;
    if (this.run.peek()) await this.#cancelNow();
  }

  async #cancelNow() {
    try {
      this.receive(await post(`${this.path}/cancel`, {}));
    } catch (error) {
      tell(errorText(error));
      this.isCancelling.value = false;
    }
  }

  /** The server has taken it. @param {DataRun} run */
  begun(run) {
    this.receive(run);
    if (this.isCancelling.peek()) void this.#cancelNow();
  }

  close() {
    if (this.run.peek() && !this.gone.peek()) void post(`${this.path}/close`, {}).catch(() => {});
  }

  /** Ask until it is over: events of the stream come sooner, but a stream can break. */
  async follow() {
    for (let asked = 0; this.isOpen.peek(); asked += 1) {
      const wait = POLLS_MS[Math.min(asked, POLLS_MS.length - 1)];
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (!this.isOpen.peek()) break;
      try {
        this.receive(await get(this.path));
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 410 || error.status === 401)) {
          this.problem.value = error.status === 401 ? errorText(error)
            : "The server no longer knows this run: unknown whether it ended.";
        }
      }
    }
  }
}

export class TabRuns {
  items = signal(/** @type {RunItem[]} */ ([]));
  chosen = signal("");
  /** Whether a chart of the rows is shown in place of them. */
  isChart = signal(false);
  /** Statements after a failure that were not run. */
  left = signal(0);
  isBusy = computed(() => this.items.value.some((item) => item.isOpen.value));
  #id;
  #sequence = new AbortController();

  /** @param {string} id */
  constructor(id) {
    this.#id = id;
  }

  get shown() {
    return this.items.value.find(({ key }) => key === this.chosen.value) ?? null;
  }

  /** Run statements in order, and stop at the first that does not end well.
   * @param {Part[]} parts @param {Place} place @param {number | null} most rows of each */
  async start(parts, place, most) {
    this.cancel();
    const sequence = (this.#sequence = new AbortController());
    for (const item of this.items.peek()) item.close();
    batch(() => {
      this.items.value = [];
      this.left.value = 0;
    });
    for (const [index, part] of parts.entries()) {
      const item = new RunItem(part, place);
      batch(() => {
        this.items.value = [...this.items.peek(), item];
        this.chosen.value = item.key;
      });
      await this.#run(item, most);
      if (this.#sequence !== sequence) return;
      if (sequence.signal.aborted || item.problem.peek() || item.run.peek()?.state !== "done") {
        this.left.value = parts.length - index - 1;
        return;
      }
    }
  }

  /** @param {RunItem} item @param {number | null} most */
  async #run(item, most) {
    const { statement, params, types } = item.part;
    const body = { ...item.place, tab: this.#id, statement, params, types, ...(most ? { max_rows: most } : {}) };
    try {
      item.begun(await post("data/runs", body));
    } catch (error) {
      item.problem.value = error instanceof ApiError && error.status === 0
        ? `${error.message} It is unknown whether the statement ran.` : errorText(error);
      return;
    }
    await item.follow();
  }

  /** Cancel what runs, and do not begin what comes after it. */
  cancel() {
    this.#sequence.abort();
    for (const item of this.items.peek()) if (item.isOpen.peek()) void item.cancel();
  }

  /** Runs that the server still holds, after the page was loaded again. */
  async restore() {
    try {
      const { runs } = await get(`data/runs?${query({ tab: this.#id })}`);
      if (this.items.peek().length) return;
      const items = runs.map((/** @type {DataRun} */ run) => {
        const place = { source: run.source, database: null, schema: null };
        const item = new RunItem({ statement: run.statement ?? "", from: -1, params: run.params ?? null, types: run.types ?? null }, place);
        item.began = run.started_at * 1000;
        item.receive(run);
        return item;
      });
      batch(() => {
        this.items.value = items;
        this.chosen.value = items.at(-1)?.key ?? "";
      });
      for (const item of items) void item.follow();
    } catch {
      // Without them the tab begins empty.
    }
  }

  /** @param {DataRun} run */
  receive(run) {
    for (const item of this.items.peek()) if (item.run.peek()?.id === run.id) item.receive(run);
  }

  stop() {
    this.#sequence.abort();
    for (const item of this.items.peek()) item.close();
  }
}

/** @type {Map<string, TabRuns>} */
const tabs = new Map();
listen("run", (run) => tabs.get(run.tab)?.receive(run));

/** @param {string} id of a tab */
export function runsOf(id) {
  const found = tabs.get(id);
  if (found) return found;
  // It outlives the view that asks for it first.
  const [made] = root(() => new TabRuns(id));
  tabs.set(id, made);
  void made.restore();
  return made;
}

/** @param {string} id */
export function forgetRuns(id) {
  tabs.get(id)?.stop();
  tabs.delete(id);
}
