/** What a diagram is, apart from its drawing: what was read, what is chosen, and the places, which the
 * server keeps with the tab. */

import { errorText, post } from "./api.js";
import { data } from "./data_state.js";
import { keyOf, modelOf, plain, wireText } from "./diagram_model.js";
import { Places } from "./diagram_places.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { say, tell } from "./state.js";
import { counted } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./diagram_contract.js").Spot} Spot */
/** @typedef {import("./diagram_contract.js").DiagramFacts} DiagramFacts */
/** @typedef {import("./diagram_contract.js").Mode} Mode */
/** @typedef {import("./diagram_contract.js").Model} Model */
/** @typedef {import("./diagram_contract.js").Kept} Kept */
/** @typedef {import("./diagram_contract.js").KeptPlace} KeptPlace */

const SAVE_MS = 500;
const COMPARE_MS = 1_000;
const MOST_LOOKS = 10;

export class DiagramState {
  facts = signal(/** @type {DiagramFacts | null} */ (null));
  error = signal("");
  note = signal("");
  mode = signal(/** @type {Mode} */ ("keys"));
  guessed = signal(true);
  only = signal(/** @type {[string, string][] | null} */ (null));
  /** Whether the tables are to be chosen, though they would fit. */
  choosing = signal(false);
  chosen = signal(-1);
  search = signal("");
  shown = signal(/** @type {{ model: Model, spots: Spot[] } | null} */ (null));
  busy = signal(false);
  found = computed(() => this.#find());
  #tab;
  #places = new Places();
  /** @type {Record<Mode, Map<string, Spot>>} */
  #kept = { keys: new Map(), all: new Map() };
  #sent = "";
  #asked = 0;
  #timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  #ended = new AbortController();

  /** @param {import("./signals.js").Signal<DataTab>} tab */
  constructor(tab) {
    this.#tab = tab;
    this.#take(tab.peek().text ?? "");
    effect(() => {
      const text = tab.value.text ?? "";
      if (text === this.#sent) return;
      this.#sent = text;
      this.#take(text);  // another page of the same person has written it
      queueMicrotask(() => void this.layOut());
    });
    onEnd(() => {
      this.#ended.abort();
      this.#places.end();
      if (this.#timer) void this.#save();
    });
    void this.read();
  }

  get place() {
    const { source, database, schema } = this.#tab.peek();
    return { source, database, schema };
  }

  /** @param {string} text of the tab */
  #take(text) {
    this.#sent = text;
    /** @type {Partial<Kept>} */
    let kept = {};
    try {
      kept = JSON.parse(text || "{}");
    } catch {
      kept = {};
    }
    this.mode.value = kept.mode === "all" ? "all" : "keys";
    this.guessed.value = kept.guessed !== false;
    this.only.value = kept.only ?? null;
    for (const mode of /** @type {const} */ (["keys", "all"])) {
      this.#kept[mode] = new Map((kept.places?.[mode] ?? []).map(([schema, name, x, y]) => [keyOf(schema, name), [x, y]]));
    }
  }

  /** Read the tables, as they are now. @param {{ compare?: boolean }} [options] */
  async read({ compare = false } = {}) {
    const tab = this.#tab.peek();
    const body = { ...this.place, table: tab.table ?? "", tables: this.only.peek(), compare };
    this.busy.value = true;
    try {
      const facts = /** @type {DiagramFacts} */ (await post("data/diagram", body, this.#ended.signal));
      const before = this.facts.peek()?.tables[this.chosen.peek()];
      this.facts.value = facts;
      this.chosen.value = before ? facts.tables.findIndex(({ schema, name }) => schema === before.schema && name === before.name) : -1;
      this.error.value = "";
      await this.layOut();
      return facts;
    } catch (error) {
      if (!this.#ended.signal.aborted) this.error.value = errorText(error);
      return null;
    } finally {
      this.busy.value = false;
    }
  }

  /** Have values decide on the guessed keys, and wait a little for that. */
  async compare() {
    this.note.value = "Values are compared …";
    for (let look = 0; look < MOST_LOOKS; look += 1) {
      const facts = await this.read({ compare: true });
      if (!facts) break;
      if (!facts.comparing) {
        this.note.value = "The values have decided on every guessed key that they can.";
        return;
      }
      await new Promise((done) => setTimeout(done, COMPARE_MS));
      if (this.#ended.signal.aborted) return;
    }
    this.note.value = this.error.peek() ? "" : "Values did not decide on every guessed key.";
  }

  /** Find places for the tables that have none. @param {{ afresh?: boolean }} [options] */
  async layOut({ afresh = false } = {}) {
    const facts = this.facts.peek();
    if (!facts || facts.choose) {
      this.shown.value = null;
      return;
    }
    const asked = (this.#asked += 1);
    const mode = this.mode.peek();
    const model = modelOf(facts, mode, this.guessed.peek());
    const kept = model.boxes.map(({ key }) => (afresh ? null : this.#kept[mode].get(key) ?? null));
    let spots = /** @type {Spot[]} */ (kept);
    if (kept.some((spot) => spot === null)) {
      try {
        const links = model.wires.map(({ from, to }) => /** @type {[number, number]} */ ([from, to]));
        spots = await this.#places.find(model.boxes.map(({ w, h }) => ({ w, h })), links, kept);
      } catch (error) {
        this.error.value = error instanceof Error ? error.message : String(error);
        return;
      }
      if (this.#ended.signal.aborted || asked !== this.#asked) return;
      this.#keep(mode, model, spots);
    }
    this.shown.value = { model, spots };
  }

  /** @param {Mode} mode @param {Model} model @param {Spot[]} spots */
  #keep(mode, model, spots) {
    this.#kept[mode] = new Map(model.boxes.map(({ key }, index) => [key, spots[index]]));
    this.saveSoon();
  }

  /** A table was put somewhere. @param {number} index @param {Spot} spot */
  move(index, spot) {
    const shown = this.shown.peek();
    if (!shown?.model.boxes[index]) return;
    const spots = shown.spots.map((each, at) => (at === index ? spot : each));
    this.shown.value = { model: shown.model, spots };
    this.#keep(this.mode.peek(), shown.model, spots);
  }

  /** @param {Mode} mode */
  setMode(mode) {
    this.mode.value = mode;
    this.saveSoon();
    void this.layOut();
  }

  /** @param {boolean} shown */
  setGuessed(shown) {
    this.guessed.value = shown;
    this.saveSoon();
    void this.layOut();
  }

  /** Draw these tables alone. @param {[string, string][]} names */
  choose(names) {
    this.only.value = names;
    this.choosing.value = false;
    this.chosen.value = -1;
    this.saveSoon();
    return this.read();
  }

  saveSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#save(), SAVE_MS);
  }

  async #save() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    /** @param {Mode} mode @returns {KeptPlace[]} */
    const places = (mode) => [...this.#kept[mode]].map(([key, [x, y]]) => /** @type {KeptPlace} */ ([...JSON.parse(key), x, y]));
    /** @type {Kept} */
    const kept = {
      mode: this.mode.peek(), guessed: this.guessed.peek(), only: this.only.peek(),
      places: { keys: places("keys"), all: places("all") },
    };
    const text = JSON.stringify(kept);
    const before = this.#sent;
    if (text === before) return;
    this.#sent = text;
    try {
      if (!(await data.write(this.#tab.peek().id, { text }))) tell("Another page has changed this diagram: its places are shown.");
    } catch (error) {
      this.#sent = before;
      if (!this.#ended.signal.aborted) this.error.value = errorText(error);
    }
  }

  /** The tables of which the name, or that of a column, has what is searched for. */
  #find() {
    const [words, facts] = [this.search.value.trim().toLowerCase(), this.facts.value];
    if (!words || !facts) return /** @type {ReadonlySet<number>} */ (new Set());
    const ranks = facts.tables.flatMap(({ name, columns }, index) => {
      const at = name.toLowerCase().indexOf(words);
      const rank = at < 0 ? (columns.some((column) => column.name.toLowerCase().includes(words)) ? 2 : 3) : name.length === words.length ? 0 : 1;
      return rank < 3 ? [[rank, index]] : [];
    });
    return new Set(ranks.sort(([one], [other]) => one - other).map(([, index]) => index));
  }

  /** The keys of a table, both ways, in words. @param {number} index */
  wiresOf(index) {
    const model = this.shown.peek()?.model;
    return (model?.wires ?? []).filter(({ from, to }) => from === index || to === index);
  }

  /** Choose a table, and say which. @param {number} index */
  pick(index) {
    this.chosen.value = index;
    const model = this.shown.peek()?.model;
    if (index < 0 || !model) return;
    const { facts } = model.boxes[index];
    const wires = this.wiresOf(index).slice(0, 4).map((wire) => wireText(model, wire));
    say(`${plain(facts.name)}, ${counted(facts.columns.length, "column")}. ${wires.join(". ")}`);
  }

  /** The nearest table in a direction. @param {number} dx @param {number} dy */
  step(dx, dy) {
    const shown = this.shown.peek();
    if (!shown?.spots.length) return;
    const { model: { boxes }, spots } = shown;
    /** @param {number} index */
    const middle = (index) => [spots[index][0] + boxes[index].w / 2, spots[index][1] + boxes[index].h / 2];
    const at = this.chosen.peek();
    if (at < 0) {
      const first = spots.reduce((best, [x, y], index) => (x + y < spots[best][0] + spots[best][1] ? index : best), 0);
      this.pick(first);
      return;
    }
    const [x, y] = middle(at);
    let [best, least] = [-1, Infinity];
    boxes.forEach((_, index) => {
      const [ox, oy] = middle(index);
      const [along, across] = dx ? [(ox - x) * dx, Math.abs(oy - y)] : [(oy - y) * dy, Math.abs(ox - x)];
      if (index === at || along <= 0) return;
      const far = along + across * 2;
      if (far < least) [best, least] = [index, far];
    });
    if (best >= 0) this.pick(best);
  }

  /** The next table that a key joins with the chosen one. @param {number} by */
  follow(by) {
    const at = this.chosen.peek();
    const from = this.#followed?.to === at ? this.#followed.from : at;
    const near = [...new Set(this.wiresOf(from).flatMap((wire) => [wire.from, wire.to]))].filter((index) => index !== from);
    if (!near.length) return;
    const next = near[(near.indexOf(at) + by + near.length) % near.length];
    this.#followed = { from, to: next };
    this.pick(next);
  }
  #followed = /** @type {{ from: number, to: number } | null} */ (null);
}
