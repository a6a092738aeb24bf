/** What Activity shows: lines page by page, sessions folded, filters that are part of the address. */

import { errorText, get, query } from "./api.js";
import { batch, signal } from "./signals.js";
import { route } from "./state.js";

/** @typedef {import("./contract.js").Line} Line */
/** @typedef {import("./contract.js").AgentSession} AgentSession */
/** @typedef {import("./contract.js").ActivityPage} ActivityPage */
/** @typedef {import("./contract.js").GatesOfPage} GatesOfPage */
/** @typedef {{ kind: "session", session: AgentSession, open: boolean }
 *   | { kind: "line", line: Line, inner: boolean }
 *   | { kind: "more", session: string | number }} Row */

export const FACETS = /** @type {const} */ (["source", "actor", "outcome", "effect", "surface"]);
const FILTERS = ["q", ...FACETS, "session", "since", "until", "own"];
const PAGE = 100;
const READ_MS = 2_000;

/** The filters of the address. @param {URLSearchParams} search */
export function filtersOf(search) {
  return Object.fromEntries(FILTERS.map((name) => [name, search.get(name) ?? ""])
    .filter(([, value]) => value !== ""));
}

/** The address with some of its parts changed; an empty one is left out.
 * @param {Record<string, string>} changes */
export function addressWith(changes) {
  const search = new URLSearchParams(route.peek().query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) search.set(name, value);
    else search.delete(name);
  }
  const text = search.toString();
  return `#/activity${text ? `?${text}` : ""}`;
}

/** A time of a filter as Unix seconds: "1h", "24h", "7d" count back from now.
 * @param {Record<string, string>} filters */
function withTimes(filters) {
  const spans = /** @type {Record<string, number>} */ ({ "1h": 3600, "24h": 86400, "7d": 604800, "30d": 2592000 });
  const span = spans[filters.since ?? ""];
  return span ? { ...filters, since: String(Math.floor(Date.now() / 1000 - span)) } : filters;
}

export class ActivityData {
  lines = signal(/** @type {Line[]} */ ([]));
  sessions = signal(/** @type {AgentSession[]} */ ([]));
  opened = signal(/** @type {ReadonlyMap<string | number, { lines: Line[], next: string | null }>} */ (new Map()));
  counts = signal(/** @type {ActivityPage["counts"]} */ ({ total: 0, more: false, own: { left_out: 0, more: false } }));
  facets = signal(/** @type {Partial<ActivityPage["facets"]>} */ ({}));
  /** The gates whose lines are shown, and those whose lines are not. */
  gates = signal(/** @type {GatesOfPage} */ ({ gates: {}, missing: [] }));
  error = signal("");
  loading = signal(true);
  /** The newest line that this operator may see, by gate; null before the first page. */
  newest = signal(/** @type {Readonly<Record<string, number>> | null} */ (null));
  /** How much of the record can be searched, from 0 to 1: it is read when someone opens the page. */
  read = signal(1);
  /** @type {Record<string, string>} */
  filters = {};
  /** @type {string | null} */
  #next = null;
  #pending = new AbortController();
  #loadingMore = false;
  #moreSessions = signal(/** @type {string | number | null} */ (null));

  /** @param {Record<string, string>} filters @param {boolean} folded */
  async load(filters, folded) {
    this.#pending.abort();
    const pending = (this.#pending = new AbortController());
    this.filters = withTimes(filters);
    this.loading.value = true;
    try {
      const text = query({ ...this.filters, limit: PAGE });
      const [page, groups] = await Promise.all([
        get(`activity?${text}`, pending.signal),
        folded ? get(`activity/sessions?${query(this.filters)}`, pending.signal) : null,
      ]);
      batch(() => {
        this.lines.value = page.lines;
        this.sessions.value = groups?.sessions ?? [];
        this.#moreSessions.value = groups?.next ?? null;
        this.opened.value = new Map();
        this.counts.value = page.counts;
        this.#learn(page, groups);
        this.facets.value = page.facets;
        this.#next = page.next;
        this.newest.value = page.newest ?? {};
        this.read.value = page.read ?? 1;
        this.error.value = "";
        this.loading.value = false;
      });
      if (this.read.peek() < 1) this.#awaitRest(filters, folded, pending.signal);
    } catch (error) {
      if (pending.signal.aborted) return;
      batch(() => {
        this.error.value = errorText(error);
        this.loading.value = false;
      });
    }
  }

  /** Keep which gates have answered, by the newest pages.
   * @param {Partial<GatesOfPage>} page @param {Partial<GatesOfPage> | null} [other] */
  #learn(page, other) {
    const missing = new Map([page, other].flatMap((each) => each?.missing ?? []).map((each) => [each.gate, each]));
    const gates = { ...this.gates.peek().gates, ...page.gates, ...other?.gates };
    this.gates.value = { gates, missing: [...missing.values()] };
  }

  /** Look how far the record is read, and load again at the end: the newest lines come last.
   * @param {Record<string, string>} filters @param {boolean} folded @param {AbortSignal} ended */
  #awaitRest(filters, folded, ended) {
    setTimeout(async () => {
      if (ended.aborted) return;
      try {
        this.read.value = (await get("activity?limit=1", ended)).read ?? 1;
      } catch {
        // The next look says more.
      }
      if (ended.aborted) return;
      if (this.read.peek() < 1) this.#awaitRest(filters, folded, ended);
      else void this.load(filters, folded);
    }, READ_MS);
  }

  /** Stop what goes on for this view. */
  end() {
    this.#pending.abort();
  }

  /** The next page, once the end is in sight. */
  async more() {
    if (!this.#next || this.#loadingMore || this.loading.peek()) return;
    this.#loadingMore = true;
    const { signal } = this.#pending;
    try {
      const text = query({ ...this.filters, limit: PAGE, before: this.#next });
      /** @type {ActivityPage} */
      const page = await get(`activity?${text}`, signal);
      this.#next = page.next;
      this.#learn(page);
      this.lines.value = [...this.lines.peek(), ...page.lines];
    } catch (error) {
      if (!signal.aborted) this.error.value = errorText(error);
    } finally {
      this.#loadingMore = false;
    }
  }

  /** The next page of sessions, once the end is in sight. One that goes on may come again. */
  async older() {
    const before = this.#moreSessions.peek();
    if (!before || this.#loadingMore || this.loading.peek()) return;
    this.#loadingMore = true;
    const { signal } = this.#pending;
    try {
      const page = await get(`activity/sessions?${query({ ...this.filters, before })}`, signal);
      const known = new Set(this.sessions.peek().map(({ session }) => session));
      const added = page.sessions.filter((/** @type {AgentSession} */ { session }) => !known.has(session));
      batch(() => {
        this.#moreSessions.value = page.next;
        this.#learn(page);
        this.sessions.value = [...this.sessions.peek(), ...added];
      });
    } catch (error) {
      if (!signal.aborted) this.error.value = errorText(error);
    } finally {
      this.#loadingMore = false;
    }
  }

  /** Whether there are sessions that are not loaded yet. */
  get hasOlder() {
    return this.#moreSessions.value !== null;
  }

  /** Unfold a session, or fold it. @param {string | number} session */
  async toggle(session) {
    const opened = new Map(this.opened.peek());
    if (opened.delete(session)) this.opened.value = opened;
    else await this.moreOf(session);
  }

  /** @param {string | number} session */
  async moreOf(session) {
    const old = this.opened.peek().get(session);
    const { signal } = this.#pending;
    try {
      const text = query({ ...this.filters, session, limit: PAGE, before: old?.next });
      /** @type {ActivityPage} */
      const page = await get(`activity?${text}`, signal);
      const lines = [...(old?.lines ?? []), ...page.lines];
      this.opened.value = new Map(this.opened.peek()).set(session, { lines, next: page.next });
    } catch (error) {
      if (!signal.aborted) this.error.value = errorText(error);
    }
  }

  /** @param {boolean} folded @returns {Row[]} */
  rows(folded) {
    if (!folded) return this.lines.value.map((line) => ({ kind: "line", line, inner: false }));
    const rows = /** @type {Row[]} */ ([]);
    for (const session of this.sessions.value) {
      const open = this.opened.value.get(session.session);
      rows.push({ kind: "session", session, open: open !== undefined });
      for (const line of open?.lines ?? []) rows.push({ kind: "line", line, inner: true });
      if (open?.next) rows.push({ kind: "more", session: session.session });
    }
    return rows;
  }
}
