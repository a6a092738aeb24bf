/**
 * One stream of events per browser. The tab that holds the lock reads it and passes each event to
 * the others by a channel; when it closes, another tab gets the lock and goes on after the last
 * event that it received.
 */

import { request } from "./api.js";
import { batch, signal } from "./signals.js";
import { clock } from "./text.js";

/** @typedef {{ seq: number, name: string, data: any }} LiveEvent */
/** @typedef {{ ok: boolean, since: number | null }} LiveState */

/** Whether events arrive, and since when they do not. */
export const live = signal(/** @type {LiveState} */ ({ ok: false, since: null }));

const SILENCE_MS = 25_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

export class Feed {
  #ended = new AbortController();
  #receivedAt = Date.now();
  #leads = false;
  #after;
  #channel;
  #deliver;

  /** @param {string} name of lock and channel @param {number} after the last event that is known
   * @param {(event: LiveEvent) => void} deliver */
  constructor(name, after, deliver) {
    this.#after = after;
    this.#deliver = deliver;
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    this.#channel.postMessage({ kind: "hello" });
    navigator.locks
      .request(name, { signal: this.#ended.signal }, () => this.#lead())
      .catch(() => {});
    const watch = setInterval(() => this.#watch(), 5_000);
    this.#ended.signal.addEventListener("abort", () => clearInterval(watch));
  }

  stop() {
    this.#ended.abort();
    this.#channel.close();
    live.value = { ok: false, since: null };
  }

  /** @param {{ kind: string, state?: LiveState, event?: LiveEvent }} message */
  #receive(message) {
    if (message.kind === "hello") {
      if (this.#leads) this.#say();
      return;
    }
    this.#receivedAt = Date.now();
    if (message.kind === "state" && message.state) this.#become(message.state);
    if (message.kind === "event" && message.event) this.#take(message.event);
  }

  #say() {
    this.#channel.postMessage({ kind: "state", state: live.peek() });
  }

  /** @param {LiveState} state */
  #become(state) {
    const old = live.peek();
    if (old.ok !== state.ok || old.since !== state.since) live.value = state;
  }

  /** A tab that does not lead, and receives nothing, is not live. */
  #watch() {
    if (!this.#leads && Date.now() - this.#receivedAt > SILENCE_MS) this.#lose();
  }

  #lose() {
    if (live.peek().ok) this.#become({ ok: false, since: clock.peek() });
    else if (live.peek().since === null) this.#become({ ok: false, since: clock.peek() });
  }

  /** @param {LiveEvent} event */
  #take(event) {
    this.#after = Math.max(this.#after, event.seq);
    if (!this.#ended.signal.aborted) batch(() => this.#deliver(event));
  }

  async #lead() {
    this.#leads = true;
    let wait = FIRST_WAIT_MS;
    while (!this.#ended.signal.aborted) {
      const began = Date.now();
      await this.#read().catch(() => {});
      if (this.#ended.signal.aborted) return;
      this.#lose();
      this.#say();
      if (Date.now() - began > LONGEST_WAIT_MS) wait = FIRST_WAIT_MS;
      await this.#pause(wait);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  /** @param {number} wait */
  #pause(wait) {
    return new Promise((resolve) => {
      setTimeout(resolve, wait);
      addEventListener("online", resolve, { once: true, signal: AbortSignal.timeout(wait) });
    });
  }

  /** Read the stream until it ends or falls silent. */
  async #read() {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const signal = AbortSignal.any([silence.signal, this.#ended.signal]);
    try {
      const response = await request(`events?after=${this.#after}`, { signal });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      while (reader) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        this.#become({ ok: true, since: null });
        this.#say();
        const blocks = (text + value).split("\n\n");
        text = blocks.pop() ?? "";
        for (const block of blocks) this.#pass(block);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {string} block one event of the stream, or a comment */
  #pass(block) {
    const fields = /** @type {Record<string, string>} */ ({});
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
    }
    if (!fields.event) return;
    const seq = Number(fields.id ?? this.#after);
    const event = { seq, name: fields.event, data: JSON.parse(fields.data || "{}") };
    this.#channel.postMessage({ kind: "event", event });
    this.#take(event);
  }
}
