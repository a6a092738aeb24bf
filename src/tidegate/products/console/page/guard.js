/**
 * Allow is dead for half a second after its card appears, moves or changes, and after the window
 * came to the front: a click or a key that was meant for something else does not allow anything.
 */

import { signal } from "./signals.js";

export const DEAD_MS = 500;
const LOOK_MS = 100;

export class AllowGuard {
  ready = signal(false);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #place = "";
  /** @type {HTMLElement | null} */
  #watched = null;
  #ended = new AbortController();

  constructor() {
    const look = setInterval(() => this.#look(), LOOK_MS);
    this.#ended.signal.addEventListener("abort", () => clearInterval(look));
    const { signal } = this.#ended;
    addEventListener("focus", () => this.changed(), { signal });
    document.addEventListener("visibilitychange", () => this.changed(), { signal });
  }

  /** The button whose place counts. @param {HTMLElement} button */
  watch(button) {
    this.#watched = button;
    this.#place = "";
    this.changed();
    queueMicrotask(() => this.#look());
  }

  changed() {
    this.ready.value = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.ready.value = true), DEAD_MS);
  }

  /** Whether a yes counts at this moment. */
  holds() {
    this.#look();
    return this.ready.peek() && document.visibilityState === "visible";
  }

  #look() {
    if (!this.#watched?.isConnected) return;
    const { left, top, width, height } = this.#watched.getBoundingClientRect();
    const place = [left, top, width, height].map(Math.round).join(" ");
    if (place !== this.#place) {
      this.#place = place;
      this.changed();
    }
  }

  stop() {
    clearTimeout(this.#timer);
    this.#ended.abort();
  }
}
