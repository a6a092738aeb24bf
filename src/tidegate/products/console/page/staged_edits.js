/**
 * Edits of a tab that wait to be submitted. The server keeps them: they are sent as they are made, one
 * request after the other, and read again when another page has made some. What can be taken back
 * is kept here, as the states of the rows before and after each step.
 */

import { ApiError, errorText, get, post, request } from "./api.js";
import { sameCell, shownCell } from "./edit_cells.js";
import { unsent } from "./edited_rows.js";
import { batch, computed, root, signal } from "./signals.js";
import { listen, perSession, say, session, tell } from "./state.js";

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {import("./edit_contract.js").Cells} Cells */
/** @typedef {import("./edit_contract.js").Cell} Cell */
/** @typedef {import("./edit_contract.js").Editability} Editability */
/** @typedef {import("./edit_contract.js").EditsOfTab} EditsOfTab */
/** @typedef {import("./edit_contract.js").Problem} Problem */
/** @typedef {import("./edit_contract.js").PutEdits} PutEdits */
/** @typedef {import("./edit_contract.js").Staged} Staged */
/** @typedef {import("./edit_contract.js").Submission} Submission */
/** A row of the grid: one that is there, by its key and as it is shown, or a new one by its id.
 * @typedef {{ id: string } | { key: string[], seen: DataCell[] }} Target */
/** @typedef {Staged & { seen: DataCell[] | null }} Row */
/** @typedef {{ id: string, before: Row | null, after: Row | null }} Step */

const MOST_PUT = 500;
const MOST_STEPS = 200;
const LOOK_MS = 3_000;
const RETRY_MS = 5_000;
// A browser sends no more than this while a page goes away.
const KEEPALIVE_BYTES = 60_000;

/** @param {readonly string[]} key */
export const keyText = (key) => JSON.stringify(key);

const newId = () => crypto.randomUUID().slice(0, 18);

export class StagedEdits {
  /** What can be edited, once that is known. */
  about = signal(/** @type {Editability | null} */ (null));
  rows = signal(/** @type {ReadonlyMap<string, Row>} */ (new Map()));
  submission = signal(/** @type {Submission | null} */ (null));
  /** What could not be staged, or sent. */
  problem = signal("");
  saving = signal(0);
  /** How many steps can be taken back, and made again. */
  undoable = signal(0);
  redoable = signal(0);
  /** Rows that are others by now than the grid has read, by the key that they had: as they are stored
   * now, and by which key; null for one that is not there any more. */
  stored = signal(/** @type {ReadonlyMap<string, { key: string[], row: DataCell[] } | null>} */ (new Map()));
  /** New rows that were written. */
  added = signal(/** @type {readonly { id: string, key: string[] | null, row: DataCell[] }[]} */ ([]));
  byKey = computed(() => new Map([...this.rows.value.values()].filter(({ key }) => key).map((row) =>
    [keyText(/** @type {string[]} */ (row.key)), row])));
  inserts = computed(() => [...this.rows.value.values()].filter(({ kind }) => kind === "insert"));
  counts = computed(() => {
    const counts = { insert: 0, update: 0, delete: 0 };
    for (const { kind } of this.rows.value.values()) counts[kind] += 1;
    return counts;
  });
  /** Names of the columns that a grid shows, in its order. */
  columns = /** @type {string[]} */ ([]);
  /** The table that the edits which are kept are of. */
  table = /** @type {import("./edit_contract.js").EditTable | null} */ (null);
  isQuery;
  #id;
  #version = 0;
  #newest = 0;
  #loaded = false;
  /** The last submission that was written. */
  #written = "";
  /** Exact rows as they were opened, by their key. @type {Map<string, { id: string, before: Cells }>} */
  #opened = new Map();
  #undo = /** @type {Step[][]} */ ([]);
  #redo = /** @type {Step[][]} */ ([]);
  #queue = Promise.resolve();
  /** What did not reach the server yet. @type {Map<string, Row | null>} */
  #waits;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retry;

  /** @param {string} id of the tab @param {boolean} isQuery */
  constructor(id, isQuery) {
    this.#id = id;
    this.isQuery = isQuery;
    this.#waits = unsent.get(id) ?? new Map();
    unsent.set(id, this.#waits);
  }

  get isUnsent() {
    return this.#waits.size > 0;
  }

  get #path() {
    return `data/tabs/${encodeURIComponent(this.#id)}/edits`;
  }

  get count() {
    const { insert, update, delete: deleted } = this.counts.value;
    return insert + update + deleted;
  }

  /** @param {string} name */
  column(name) {
    return this.about.peek()?.columns.find((each) => each.name === name);
  }

  // What the server has

  /** Done once the edits of the tab are known. @type {Promise<void>} */
  loaded = Promise.resolve();

  load() {
    this.loaded = this.#inOrder(() => this.#read());
    return this.loaded;
  }

  async #read() {
    /** @type {EditsOfTab} */
    const found = await get(this.#path);
    const old = this.rows.peek();
    batch(() => {
      this.#version = found.version;
      this.#newest = Math.max(this.#newest, found.version);
      this.table = found.table;
      const rows = new Map(found.rows.map((row) => [row.id, /** @type {Row} */ ({ ...row, seen: old.get(row.id)?.seen ?? null })]));
      // What this page did and could not send comes on top of that.
      for (const [id, row] of this.#waits) {
        if (row) rows.set(id, { ...row, before: row.before ?? rows.get(id)?.before ?? null });
        else rows.delete(id);
      }
      this.rows.value = rows;
      // One that was written before the page was loaded is no news.
      if (!this.#loaded && found.result?.state === "done") this.#written = found.result.id;
      else {
        this.#follow(found.result);
        if (!this.#loaded && found.result?.ended_at === null) this.#look(found.result.id);
      }
      this.#loaded = true;
    });
  }

  /** Another request only after the one before. @param {() => Promise<void>} work */
  #inOrder(work) {
    this.saving.value = this.saving.peek() + 1;
    this.#queue = this.#queue.then(work).then(() => {}, (error) => {
      this.problem.value = errorText(error);
      say(this.problem.peek());
    }).finally(() => {
      this.saving.value = this.saving.peek() - 1;
      if (!this.saving.peek() && this.#newest > this.#version) void this.load();
    });
    return this.#queue;
  }

  /** The edits of the tab have changed, here or in another page. @param {number} version */
  follow(version) {
    this.#newest = Math.max(this.#newest, version);
    if (!this.saving.peek() && version > this.#version) void this.load();
  }

  /** @param {{ put?: Row[], remove?: string[] }} changes @returns {Promise<void>} */
  #send({ put = [], remove = [] }) {
    for (const id of remove) this.#waits.set(id, null);
    for (const row of put) this.#waits.set(row.id, row);
    return this.flush();
  }

  /** Send what waits. What the server cannot take now is kept, and sent again. */
  flush() {
    clearTimeout(this.#retry);
    if (!this.isUnsent) return this.#queue;
    return this.#inOrder(async () => {
      try {
        while (this.isUnsent) await this.#sendSome([...this.#waits].slice(0, MOST_PUT));
      } catch (error) {
        const { status, code } = error instanceof ApiError ? error : { status: 0, code: "" };
        if (!status || !session.peek() || status === 401 || status === 429 || status >= 500 || code === "tab.changed") {
          this.#retry = setTimeout(() => kept().get(this.#id) === this && void this.flush(), RETRY_MS);
          this.problem.value = `${errorText(error)} Your last edits are kept in this page, and are sent again.`;
          say(this.problem.peek());
          return;
        }
        // It does not take them: what it has is what is staged.
        this.#waits.clear();
        await this.#read();
        throw error;
      }
    });
  }

  /** @param {[string, Row | null][]} some */
  async #sendSome(some) {
    await this.#sendPart(some.flatMap(([, row]) => (row ? [row] : [])), some.flatMap(([id, row]) => (row ? [] : [id])));
    for (const [id, row] of some) if (this.#waits.get(id) === row) this.#waits.delete(id);
  }

  /** @param {Row[]} put @param {string[]} remove */
  async #sendPart(put, remove, again = true) {
    const table = this.about.peek()?.table;
    // A column of a result that is none of the table's has no name.
    const named = this.columns.flatMap((name, at) => (name ? [at] : []));
    const body = {
      version: this.#version, columns: named.map((at) => this.columns[at]), remove,
      put: put.map(({ id, kind, key, seen, cells }) => ({
        id, kind, ...(key ? { key } : {}), ...(key && seen ? { seen: named.map((at) => seen[at]) } : {}), ...(kind === "delete" ? {} : { cells }),
      })),
      ...(this.isQuery && table ? { table: { database: table.database, schema: table.schema, table: table.table ?? table.name } } : {}),
    };
    /** @type {PutEdits} */
    let found;
    try {
      const text = JSON.stringify(body);
      // A request that has begun is answered even if the page goes away.
      found = await (await request(this.#path, {
        method: "POST", keepalive: text.length * 3 < KEEPALIVE_BYTES, headers: { "content-type": "application/json" }, body: text,
      })).json();
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409 || !again) throw error;
      // Another page has staged since: what this page did comes on top of that.
      await this.#read();
      await this.#sendPart(put, remove, false);
      return;
    }
    this.#version = found.version;
    if (table) this.table = table;
    batch(() => {
      this.#learn(found.rows);
      if (found.problems.length) this.#refuse(found.problems);
      else this.problem.value = "";
    });
  }

  /** The exact rows of staged edits. @param {Staged[]} all */
  #learn(all) {
    const rows = new Map(this.rows.peek());
    let learnt = false;
    for (const { id, key, before } of all) {
      if (!before) continue;
      if (key) this.#opened.set(keyText(key), { id, before });
      const row = rows.get(id);
      if (!row || row.before) continue;
      rows.set(id, { ...row, before });
      learnt = true;
    }
    if (learnt) this.rows.value = rows;
  }

  /** @param {Problem[]} problems */
  #refuse(problems) {
    const rows = new Map(this.rows.peek());
    const stored = new Map(this.stored.peek());
    for (const { id, problem, column, now } of problems) {
      const row = rows.get(id);
      if (!row) continue;
      if (problem === "invalid" && column && row.kind !== "delete" && Object.keys(row.cells).length > 1) {
        const { [column]: _, ...cells } = row.cells;
        rows.set(id, { ...row, cells });
      } else rows.delete(id);
      if (row.key && problem !== "invalid") {
        this.#opened.delete(keyText(row.key));
        const shown = now && this.columns.map((name) => shownCell(now[name] ?? null));
        stored.set(this.#firstKey(row.key), shown ? { key: row.key, row: shown } : null);
      }
    }
    const [first] = problems;
    const why = { changed: "The row was changed meanwhile. It is shown as it is now; your edit of it was not taken.",
      gone: "The row is gone. Your edit of it was not taken.", invalid: "" }[first.problem];
    batch(() => {
      this.rows.value = rows;
      this.stored.value = stored;
      this.problem.value = [first.message || why, first.message && why, problems.length > 1 ? `${problems.length} rows were not taken.` : ""].filter(Boolean).join(" ");
    });
    say(this.problem.peek());
  }

  // Edits

  /** The staged edit of a row, if there is one. @param {Target} target */
  of(target) {
    return "id" in target ? this.rows.peek().get(target.id) : this.byKey.peek().get(keyText(target.key));
  }

  /** A row as it is in the database, exactly and whole: what an editor opens with.
   * @param {Target} target @returns {Promise<Cells | null>} */
  async open(target) {
    return (await this.openAll([target]))[0];
  }

  /** The same of several rows. @param {Target[]} targets @returns {Promise<(Cells | null)[]>} */
  async openAll(targets) {
    /** @param {Target} target */
    const find = (target) => ("id" in target ? null : this.of(target)?.before ?? this.#opened.get(keyText(target.key))?.before ?? null);
    const missing = () => targets.flatMap((target) => ("id" in target || find(target) ? [] : [target]));
    // An edit that is on its way brings its row, and must not be put over by one that only opens it.
    if (missing().length) await this.flush();
    const rows = missing();
    if (rows.length) {
      await this.#inOrder(async () => {
        for (let from = 0; from < rows.length; from += MOST_PUT) {
          await this.#sendPart(rows.slice(from, from + MOST_PUT).map((target) => this.of(target) ??
            { id: newId(), kind: "update", key: target.key, seen: target.seen, cells: {}, before: null }), []);
        }
      });
    }
    return targets.map(find);
  }

  /** Change cells of rows and add new rows, as one step; the ids of the new ones.
   * @param {{ target: Target, cells: Cells }[]} changes @param {Cells[]} [added] */
  write(changes, added = []) {
    const written = changes.map(({ target, cells }) => {
      const before = this.of(target) ?? null;
      const id = before?.id ?? ("id" in target ? target.id : this.#opened.get(keyText(target.key))?.id ?? newId());
      return { id, before, after: this.#changed(before, target, id, cells) };
    });
    const made = added.map((cells) => {
      const id = newId();
      return { id, before: null, after: /** @type {Row} */ ({ id, kind: "insert", key: null, before: null, seen: null, cells }) };
    });
    this.#step([...written, ...made]);
    return made.map(({ id }) => id);
  }

  /** A row with some cells changed; null if nothing differs from the database any more.
   * @param {Row | null} row @param {Target} target @param {string} id @param {Cells} cells @returns {Row | null} */
  #changed(row, target, id, cells) {
    if ("id" in target) return row && { ...row, cells: { ...row.cells, ...cells } };
    const before = row?.before ?? this.#opened.get(keyText(target.key))?.before ?? null;
    const all = { ...(row?.kind === "update" ? row.cells : {}), ...cells };
    const left = before ? Object.fromEntries(Object.entries(all).filter(([name, cell]) => !sameCell(cell, before[name]))) : all;
    if (!Object.keys(left).length) return null;
    return { id, kind: "update", key: target.key, seen: row?.seen ?? target.seen, before, cells: left };
  }

  /** Delete rows, or keep those that were to be deleted. A new one is dropped. @param {Target[]} targets */
  remove(targets) {
    const all = targets.every((target) => this.of(target)?.kind === "delete");
    this.#step(targets.map((target) => {
      const before = this.of(target) ?? null;
      if ("id" in target || all) return { id: before?.id ?? "", before, after: null };
      const id = before?.id ?? this.#opened.get(keyText(target.key))?.id ?? newId();
      return { id, before, after: /** @type {Row} */ ({ id, kind: "delete", key: target.key, seen: before?.seen ?? target.seen, before: before?.before ?? null, cells: {} }) };
    }));
  }

  /** Drop what is staged, of some rows or of all. @param {string[]} [ids] */
  discard(ids = [...this.rows.peek().keys()]) {
    this.#step(ids.flatMap((id) => {
      const before = this.rows.peek().get(id);
      return before ? [{ id, before, after: null }] : [];
    }));
  }

  /** Stage rows again over the values that are there now. @param {Row[]} rows @param {string[]} ids that they replace */
  restage(rows, ids) {
    const made = rows.map((row) => ({ ...row, id: newId(), seen: null, before: null }));
    for (const { key } of rows) if (key) this.#opened.delete(keyText(key));
    this.#step([...ids.map((id) => ({ id, before: this.rows.peek().get(id) ?? null, after: null })),
      ...made.map((row) => ({ id: row.id, before: null, after: row }))]);
  }

  /** @param {Step[]} steps */
  #step(steps) {
    const real = steps.filter(({ id, before, after }) => id && JSON.stringify(before) !== JSON.stringify(after));
    if (!real.length) return;
    this.#undo = [...this.#undo.slice(1 - MOST_STEPS), real];
    this.#redo = [];
    this.#make(real);
  }

  /** @param {Step[]} steps */
  #make(steps) {
    const rows = new Map(this.rows.peek());
    for (const { id, after } of steps) {
      if (after) rows.set(id, { ...after, before: after.before ?? rows.get(id)?.before ?? null });
      else rows.delete(id);
    }
    batch(() => {
      this.problem.value = "";
      this.rows.value = rows;
      this.undoable.value = this.#undo.length;
      this.redoable.value = this.#redo.length;
    });
    // A row that was dropped on the server gets its image again from what was seen.
    const put = steps.flatMap(({ after }) => (after ? [after] : []));
    const remove = steps.filter(({ before, after }) => before && !after).map(({ id }) => id);
    void this.#send({ put, remove });
  }

  /** The newest edit, where the page does not know its step any more: a cell, or a row without others.
   * @returns {Step[] | undefined} */
  #newestEdit() {
    const row = [...this.rows.peek().values()].at(-1);
    if (!row) return undefined;
    const cells = { ...row.cells };
    const names = Object.keys(cells);
    const [name] = names.slice(-1);
    if (name !== undefined) delete cells[name];
    const stays = row.kind === "insert" ? names.length > 0 : row.kind === "update" && names.length > 1;
    return [{ id: row.id, before: stays ? { ...row, cells } : null, after: row }];
  }

  /** Take the last step back; one that was made before the page was loaded value by value. */
  undo() {
    const steps = this.#undo.pop() ?? this.#newestEdit();
    if (!steps) {
      tell("There is nothing to take back.");
      return;
    }
    this.#redo.push(steps);
    this.#make(steps.map(({ id, before, after }) => ({ id, before: after, after: before })));
    say("Taken back.");
  }

  /** Make a step again that was taken back. */
  redo() {
    const steps = this.#redo.pop();
    if (!steps) return;
    this.#undo.push(steps);
    this.#make(steps);
    say("Made again.");
  }

  // Submitting

  /** Submit all as one change. @param {string} reason */
  async submit(reason) {
    await this.flush();
    if (this.isUnsent) return;
    await this.#inOrder(async () => {
      const begun = await post(`${this.#path}/submit`, { version: this.#version, reason });
      // The stream may have said more of it by now.
      if (this.submission.peek()?.id !== begun.id && begun.id !== this.#written) this.#follow(begun);
      this.#look(begun.id);
    });
  }

  /** Ask how far it is: the stream may be cut. @param {string} id */
  #look(id) {
    setTimeout(async () => {
      const now = this.submission.peek();
      if (now?.id !== id || now.ended_at !== null) return;
      const found = await get(`${this.#path}/result`).catch(() => undefined);
      if (found?.id === id) this.#follow(found);
      if (found === null) { // another gate has made them, and has ended
        this.submission.value = null;
        void this.load();
        return;
      }
      this.#look(id);
    }, LOOK_MS);
  }

  async cancel() {
    await this.#inOrder(async () => this.#follow(await post(`${this.#path}/cancel`, {})));
  }

  /** What would be sent to the database. @returns {Promise<{ text: string, spans: [string, string][] | null,
   *   statements: number, shown: number, verdict: string, why: string }>} */
  async sql() {
    await this.flush();
    return get(`${this.#path}/sql`);
  }

  /** @param {Submission | null} next */
  #follow(next) {
    const old = this.submission.peek();
    if (next && old?.id === next.id && old.ended_at !== null && next.ended_at === null) return;
    if (!next || next.id === this.#written) return;
    this.submission.value = next;
    if (next.state !== "done") return;
    this.#written = next.id;
    this.#settle(next);
  }

  /** @param {Submission} submission */
  receive(submission) {
    this.#follow(submission);
  }

  /** The key by which the grid has read a row that may have been given others since.
   * @param {string[]} key */
  #firstKey(key) {
    const text = keyText(key);
    for (const [first, found] of this.stored.peek()) if (found && keyText(found.key) === text) return first;
    return text;
  }

  /** The rows were written: show them as they are stored. @param {Submission} done */
  #settle({ rows, columns }) {
    const stored = new Map(this.stored.peek());
    const added = [...this.added.peek()];
    const place = this.columns.map((name) => columns.indexOf(name));
    for (const { id, kind, was, key, row } of rows) {
      const shown = row && place.map((at) => (at < 0 ? null : row[at]));
      const old = was ?? this.rows.peek().get(id)?.key ?? key;
      const again = added.findIndex((each) => old && each.key && keyText(each.key) === keyText(old));
      if (kind === "insert" && shown) added.push({ id, key, row: shown });
      else if (again >= 0) added.splice(again, 1, ...(shown ? [{ ...added[again], key: key ?? old, row: shown }] : []));
      else if (old) stored.set(this.#firstKey(old), shown ? { key: key ?? old, row: shown } : null);
    }
    this.#undo = [];
    this.#redo = [];
    this.#opened.clear();
    batch(() => {
      this.rows.value = new Map();
      this.stored.value = stored;
      this.added.value = added;
      this.undoable.value = this.redoable.value = 0;
    });
    void this.load();
  }

  /** The rows are read again: nothing that was shown over them holds any more. */
  forget() {
    batch(() => {
      this.#opened.clear();
      this.stored.value = new Map();
      this.added.value = [];
    });
  }
}

const kept = perSession(() => /** @type {Map<string, StagedEdits>} */ (new Map()));

/** The edits of a tab. @param {string} id @param {boolean} isQuery */
export function editsOf(id, isQuery) {
  const found = kept().get(id);
  if (found) return found;
  const [made] = root(() => new StagedEdits(id, isQuery));
  kept().set(id, made);
  void made.load();
  return made;
}

addEventListener("beforeunload", (event) => {
  if ([...kept().values()].some((edits) => edits.saving.peek() || edits.isUnsent)) event.preventDefault();
});
listen("edits", ({ tab, version }) => kept().get(tab)?.follow(version));
listen("edit", (submission) => kept().get(submission.tab)?.receive(submission));
listen("tab", ({ tab, action }) => {
  if (action !== "closed") return;
  kept().delete(tab.id);
  unsent.delete(tab.id);
});
