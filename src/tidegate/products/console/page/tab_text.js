/**
 * The text of a tab, kept on the server while it is typed. Where another page wrote it too, the
 * person chooses: nothing is overwritten in silence.
 */

import { ApiError, errorText, get, request } from "./api.js";
import { data } from "./data_state.js";
import { h } from "./dom.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./chart_contract.js").ChartSpec} ChartSpec */
/** @typedef {{ text: string, version: number, chart: string }} Version `chart` as JSON */

/** What was typed and did not reach the server yet, of tabs that are not shown: by tab.
 * @type {Map<string, { text: string, base: Version, chart: ChartSpec | null }>} */
const drafts = new Map();

/** @param {string | null} text as a text area holds it */
const plain = (text) => (text ?? "").replace(/\r\n?/g, "\n");

const WAIT_MS = 700;
const RETRY_MS = 5_000;
// A browser sends no more than this while a page goes away.
const KEEPALIVE_BYTES = 60_000;

export class TabText {
  /** What another page wrote, while this one has another text. */
  conflict = signal(/** @type {DataTab | null} */ (null));
  problem = signal("");
  /** The chart of the results, null where none was chosen. */
  chart = signal(/** @type {ChartSpec | null} */ (null));
  isSaved;
  #editor;
  #id;
  /** @type {import("./signals.js").Signal<Version>} */
  #base;
  /** @type {string | null} */
  #sent = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {import("./signals.js").Signal<DataTab>} tab @param {import("./editor.js").Editor} editor */
  constructor(tab, editor) {
    this.#editor = editor;
    const { id, text, version, chart } = tab.peek();
    const draft = drafts.get(id);
    drafts.delete(id);
    this.#id = id;
    editor.reset(draft?.text ?? plain(text));
    this.#base = signal(draft?.base ?? { text: plain(text), version, chart: JSON.stringify(chart ?? null) });
    this.chart.value = draft ? draft.chart : chart ?? null;
    this.isSaved = computed(() => editor.text.value === this.#base.value.text && JSON.stringify(this.chart.value) === this.#base.value.chart);
    effect(() => data.setEdited(id, !this.isSaved.value));
    effect(() => this.#follow(tab.value));
    effect(() => {
      void [editor.text.value, this.chart.value];
      if (!this.isSaved.value && !this.conflict.value) this.#later(WAIT_MS);
    });
    const leave = () => document.visibilityState === "hidden" && void this.save(true);
    document.addEventListener("visibilitychange", leave);
    onEnd(() => {
      document.removeEventListener("visibilitychange", leave);
      clearTimeout(this.#timer);
      if (this.isSaved.peek()) return;
      drafts.set(id, { text: editor.text.peek(), base: this.#base.peek(), chart: this.chart.peek() });
      if (!this.conflict.peek()) void this.save();
    });
  }

  /** @param {number} wait */
  #later(wait) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), wait);
  }

  /** The tab as the server has it now. @param {DataTab} tab */
  #follow(tab) {
    const base = this.#base.peek();
    const mine = this.#editor.text.peek();
    if (tab.version <= base.version) return;
    const text = plain(tab.text);
    const chart = JSON.stringify(tab.chart ?? null);
    // Of two charts the one that was chosen here stays.
    if (JSON.stringify(this.chart.peek()) === base.chart) this.chart.value = tab.chart ?? null;
    if (text === base.text || text === mine || text === this.#sent) {
      this.#base.value = { text, version: tab.version, chart };
      if (text === mine) this.conflict.value = null;
    } else if (mine === base.text) {
      this.#take(tab);
    } else {
      clearTimeout(this.#timer);
      this.conflict.value = tab;
    }
  }

  /** @param {DataTab} tab */
  #take(tab) {
    const text = plain(tab.text);
    this.#base.value = { text, version: tab.version, chart: JSON.stringify(tab.chart ?? null) };
    this.#editor.reset(text);
    this.conflict.value = null;
  }

  /** @param {boolean} [goesAway] whether the page may be gone before the answer */
  async save(goesAway = false) {
    clearTimeout(this.#timer);
    const text = this.#editor.text.peek();
    if (this.isSaved.peek() || this.conflict.peek() || this.#sent !== null) return;
    const chart = this.chart.peek();
    this.#sent = text;
    try {
      const body = { text, version: this.#base.peek().version, chart };
      const keepalive = goesAway && text.length * 3 < KEEPALIVE_BYTES;
      const response = await request(`data/tabs/${encodeURIComponent(this.#id)}`, {
        method: "POST", keepalive, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
      });
      /** @type {DataTab} */
      const tab = await response.json();
      if (tab.version > this.#base.peek().version) this.#base.value = { text, version: tab.version, chart: JSON.stringify(chart) };
      this.problem.value = "";
      if (drafts.get(this.#id)?.text === text) drafts.delete(this.#id);
      data.put(tab);
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) await this.#collide(error);
      else {
        this.problem.value = errorText(error);
        this.#later(RETRY_MS);
      }
    } finally {
      this.#sent = null;
    }
    if (!this.problem.peek() && !this.isSaved.peek() && this.#editor.area.isConnected) this.#later(WAIT_MS);
  }

  /** @param {ApiError} error */
  async #collide(error) {
    try {
      const tab = error.body.tab ?? (await get("data/tabs")).tabs.find((/** @type {DataTab} */ each) => each.id === this.#id);
      this.#sent = null;
      if (tab) this.#follow(tab);
      else this.problem.value = errorText(error);
    } catch (caught) {
      this.problem.value = errorText(caught);
    }
  }

  keepMine() {
    const other = this.conflict.peek();
    if (!other) return;
    this.#base.value = { text: plain(other.text), version: other.version, chart: JSON.stringify(other.chart ?? null) };
    this.conflict.value = null;
    void this.save();
  }

  takeTheirs() {
    const other = this.conflict.peek();
    if (other) this.#take(other);
  }
}

/** Both texts, and the choice. @param {TabText} kept @param {import("./editor.js").Editor} editor */
export function conflictView(kept, editor) {
  return () => {
    const other = kept.conflict.value;
    if (!other) return null;
    const mine = editor.text.peek().split("\n");
    const theirs = plain(other.text).split("\n");
    return h("section", { class: "conflict", role: "alert", "aria-label": "Two texts" },
      h("p", {}, h("strong", {}, "Another page has changed this text. "), "Choose which one stays; the other is dropped."),
      h("div", { class: "both" },
        textBox("Your text", mine, new Set(theirs)), textBox("The other text", theirs, new Set(mine))),
      h("div", { class: "choose" },
        h("button", { class: "primary", onclick: () => kept.keepMine() }, "Keep my text"),
        h("button", { onclick: () => kept.takeTheirs() }, "Take the other text")));
  };
}

/** @param {string} label @param {string[]} lines @param {Set<string>} others */
const textBox = (label, lines, others) => h("figure", {},
  h("figcaption", {}, label),
  h("pre", { class: "statement", tabindex: "0", role: "region", "aria-label": label, dir: "ltr" },
    lines.map((line) => (others.has(line) ? [...visible(line), "\n"] : h("mark", {}, visible(line), "\n")))));

/** @param {string} id of a tab that was closed */
export const forgetText = (id) => void drafts.delete(id);
