/** What all pages share: who is signed in, where we are, what is said, and the Inbox's cards. */

import { get } from "./api.js";
import { batch, signal } from "./signals.js";

/** @typedef {import("./contract.js").Card} Card */
/** @typedef {import("./contract.js").Inbox} Inbox */

/** Undefined until the server has answered; null when signed out. */
export const session = signal(
  /** @type {import("./contract.js").Session | null | undefined} */ (undefined));

/** @typedef {{ page: string, id: string, query: URLSearchParams }} Route */

/** @returns {Route} */
function readRoute() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [page, id] = path.split("/", 2);
  let name = "";
  try {
    name = decodeURIComponent(id ?? "");
  } catch {
    name = "";
  }
  return { page: page || "inbox", id: name, query: new URLSearchParams(search ?? "") };
}

export const route = signal(readRoute());
addEventListener("hashchange", () => (route.value = readRoute()));

/** @param {string} hash @param {{ replace?: boolean }} [options] */
export function go(hash, { replace = false } = {}) {
  if (location.hash === hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  route.value = readRoute();
}

const TOLD_MS = 6_000;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let telling;

/** @param {string} text read out, and shown nowhere */
export function say(text) {
  clearTimeout(telling);
  const place = document.getElementById("said");
  if (!place) return;
  place.removeAttribute("popover");
  place.textContent = text;
}

/** Read out, and shown for a moment, over dialogs too: where nothing else answers what a person did.
 * @param {string} text */
export function tell(text) {
  say(text);
  const place = document.getElementById("said");
  if (!place) return;
  place.popover = "manual";
  place.showPopover();
  telling = setTimeout(() => place.removeAttribute("popover"), TOLD_MS);
}

/** A choice of the person that is kept in the browser: none holds data of a source.
 * @template {string} T @param {string} name @param {T} first @param {readonly T[]} values */
export function choice(name, first, values) {
  const kept = /** @type {T} */ (localStorage.getItem(`tidegate.${name}`));
  const chosen = signal(values.includes(kept) ? kept : first);
  return {
    get value() {
      return chosen.value;
    },
    set value(next) {
      chosen.value = next;
      localStorage.setItem(`tidegate.${name}`, next);
    },
  };
}

export const theme = choice("theme", "auto", ["auto", "light", "dark"]);
export const singleKeys = choice("keys", "on", ["on", "off"]);

/** Cards of answered questions that are kept: a page that is open for long does not grow. */
const MOST_DECIDED = 30;

/** The cards that the Inbox knows: those that wait, and the last that were decided. */
class Cards {
  all = signal(/** @type {ReadonlyMap<string, Card>} */ (new Map()));
  agents = signal(/** @type {Inbox["agents"]} */ ([]));
  calls = signal(/** @type {Inbox["calls"]} */ ([]));
  steps = signal(/** @type {Inbox["steps"] | null} */ (null));
  /** Whether other gates were asked for their calls, which gates have answered, and which not. */
  whole = signal(true);
  gates = signal(/** @type {import("./contract.js").GatesOfPage} */ ({ gates: {}, missing: [] }));
  webhook = signal(/** @type {Inbox["webhook"]} */ (undefined));
  loaded = signal(false);
  #seq = 0;

  async load() {
    /** @type {Inbox} */
    const inbox = await get("inbox");
    batch(() => {
      const cards = [...inbox.pending, ...[...inbox.recent].reverse()];
      this.all.value = new Map(cards.map((card) => [card.id, card]));
      this.#show(inbox);
      this.webhook.value = inbox.webhook;
      this.loaded.value = true;
    });
    this.#seq = inbox.seq;
    return inbox.seq;
  }

  /** Ask again for what is shown beside the questions: agents, their calls, what is set up. */
  async renew() {
    this.#show(await get("activity/recent"));
  }

  /** @param {import("./contract.js").Recent} recent */
  #show({ agents, calls, steps, whole = true, gates = {}, missing = [] }) {
    batch(() => {
      this.whole.value = whole;
      this.gates.value = { gates, missing };
      this.agents.value = agents;
      this.calls.value = calls;
      this.steps.value = steps;
    });
  }

  /** Ask for one card again. @param {string} id */
  async reload(id) {
    this.put(await get(`inbox/${encodeURIComponent(id)}`));
  }

  /** @param {Card} card */
  put(card) {
    const kept = new Map(this.all.peek());
    kept.delete(card.id); // the last that changed is the last in order
    kept.set(card.id, card);
    const over = [...kept.values()].filter(({ id, state }) =>
      state !== "pending" && id !== route.peek().id);
    for (const { id } of over.slice(0, Math.max(0, over.length - MOST_DECIDED))) kept.delete(id);
    this.all.value = kept;
  }

  /** @param {import("./live.js").LiveEvent} event */
  receive(event) {
    if (event.seq <= this.#seq) return;
    if (event.name === "card") this.put(event.data);
    if (event.name === "gone") {
      const kept = new Map(this.all.peek());
      kept.delete(event.data.id);
      this.all.value = kept;
    }
  }

  clear() {
    batch(() => {
      this.all.value = new Map();
      this.agents.value = [];
      this.calls.value = [];
      this.steps.value = null;
      this.whole.value = true;
      this.gates.value = { gates: {}, missing: [] };
      this.webhook.value = undefined;
      this.loaded.value = false;
    });
    this.#seq = 0;
  }

  get pending() {
    const waiting = [...this.all.value.values()].filter(({ state }) => state === "pending");
    return waiting.sort((one, other) => one.asked_at - other.asked_at);
  }

  get recent() {
    const over = [...this.all.value.values()].filter(({ state }) => state !== "pending");
    /** @param {Card} card */
    const end = (card) => card.decided_at ?? card.ended_at ?? card.expires_at ?? card.asked_at;
    return over.sort((one, other) => end(other) - end(one));
  }
}

export const cards = new Cards();

/** What is kept while one session lasts: the next one begins without it.
 * @template T @param {() => T} make @returns {() => T} */
export function perSession(make) {
  let [kept, page] = [make(), session.peek()?.page];
  return () => {
    if (session.peek()?.page !== page) [kept, page] = [make(), session.peek()?.page];
    return kept;
  };
}

/** A tab of Data that an agent opened while something else was in front. */
export const tabNotice = signal(
  /** @type {import("./data_contract.js").TabEvent | null} */ (null));

/** The requests for a token that wait and that this operator may answer. */
export const pairings = signal(/** @type {import("./access_contract.js").Pairing[]} */ ([]));

/** The serial of the newest line on record that an event named, by gate. */
export const newestLines = signal(/** @type {Readonly<Record<string, number>>} */ ({}));

/** The other gates whose new lines are not announced. */
export const silentGates = signal(/** @type {{ gate: string, name: string }[]} */ ([]));

/** @type {Map<string, Set<(data: any) => void>>} */
const listeners = new Map();

/** Follow events of the stream by their name: what pages do that are loaded later than this.
 * @param {string} name @param {(data: any) => void} take @returns {() => void} ends it */
export function listen(name, take) {
  const all = listeners.get(name) ?? new Set();
  listeners.set(name, all.add(take));
  return () => void all.delete(take);
}

/** @param {import("./live.js").LiveEvent} event */
export const passOn = ({ name, data }) => listeners.get(name)?.forEach((take) => take(data));
