/** A query tab: the text, what the gate says about it, and what came of running it. */

import { errorText, post } from "./api.js";
import { offer } from "./actions.js";
import { sourceChip } from "./card.js";
import { completion } from "./completion.js";
import { data } from "./data_state.js";
import { ask, dialogIsOpen } from "./dialogs.js";
import { h, keyed } from "./dom.js";
import { Editor } from "./editor.js";
import { planView } from "./explain_tree.js";
import { chooseFromHistory } from "./history_list.js";
import { icon } from "./icons.js";
import { doesText, isSuperseded, Judging, statementAt, verdictText } from "./judging.js";
import { lexerOf } from "./lexer.js";
import { fieldId, NONE, parametersForm, parametersIn, Values } from "./parameters.js";
import { errorPlace, runsView, sayEnd } from "./run_view.js";
import { forgetRuns, runsOf } from "./runs.js";
import { savedLine, TabSaved } from "./saved_tab.js";
import { computed, effect, onEnd, root, signal } from "./signals.js";
import { listen, say, session, tell } from "./state.js";
import { conflictView, forgetText, TabText } from "./tab_text.js";
import { TextLines } from "./text_lines.js";
import { colorClass, counted, hiddenIn, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./query_contract.js").Judged} Judged */
/** @typedef {import("./query_contract.js").Plan} Plan */
/** @typedef {import("./runs.js").Part} Part */
/** @typedef {import("./runs.js").RunItem} RunItem */

const LIMITS = ["", "100", "1000", "10000", "100000"];
const LEAST_HEIGHT = 90;
/** Values of parameters by tab, kept while the page is. @type {Map<string, Values>} */
const kept = new Map();
/** Of rows, for each run; "" as the source allows. */
const limit = signal("");

/** @param {string} id of a tab that was closed */
export function forgetTab(id) {
  forgetRuns(id);
  forgetText(id);
  kept.delete(id);
}
listen("tab", ({ tab, action }) => action === "closed" && forgetTab(tab.id));

/** @param {import("./signals.js").Signal<DataTab>} tab @returns {HTMLElement} */
export function queryTab(tab) {
  return new QueryTab(tab).node;
}

class QueryTab {
  #tab;
  #id;
  #known = NONE;
  #values;
  #plan = signal(/** @type {{ plan: Plan | null, error: string, statement: string } | null} */ (null));
  #trouble = signal("");
  #finding = signal(/** @type {ReturnType<typeof import("./find_text.js").findBar> | null} */ (null));
  #endFinding = () => {};

  /** @param {import("./signals.js").Signal<DataTab>} tab */
  constructor(tab) {
    this.#tab = tab;
    const { id } = tab.peek();
    this.#id = id;
    this.#values = kept.get(id) ?? new Values();
    kept.set(id, this.#values);
    const { language, dialect } = this.#source();
    this.editor = new Editor({ label: `Statement, ${tab.peek().title}`, language, dialect, describedBy: `judged-${id}` });
    this.text = new TabText(tab, this.editor);
    this.judging = new Judging(this.editor, () => this.#place());
    this.runs = runsOf(id);
    const suggestions = language === "sql" ? completion(this.editor, (statement, at, signal) =>
      post("data/complete", { ...this.#place(), statement, at }, signal)) : null;
    this.parameters = computed(() => this.#parameters());
    this.saved = new TabSaved(tab, this.editor, () => this.#allNames(), this.text.chart);
    effect(() => {
      for (const { name, default: first } of this.saved.base.value?.parameters ?? []) if (first !== null) this.#values.begin(name, first);
    });
    this.#marks();
    this.editor.keys.push((event) => this.#press(event));
    this.node = h("section", {
      class: () => `query ${colorClass(data.source(tab.value.source))}`, "aria-label": "Query",
    },
      this.#bar(), savedLine(this.saved), conflictView(this.text, this.editor), () => this.#finding.value?.node ?? null,
      this.editor.node, this.#judgedLine(), suggestions,
      parametersForm(() => this.parameters.value, this.#values, () => void this.run(), (name) => this.saved.parameter(name)),
      this.#divider(), this.#results());
    this.#restoreHeight();
    // The keys work in all of the tab, and where the focus has nowhere to be.
    const press = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {Node} */ (event.target);
      const inside = target === document.body || (this.node.contains(target) && target !== this.editor.area);
      if (inside && this.node.offsetParent && !event.defaultPrevented && !dialogIsOpen() && this.#press(event)) event.preventDefault();
    };
    document.addEventListener("keydown", press);
    onEnd(() => {
      document.removeEventListener("keydown", press);
      this.#endFinding();
    });
    offer(() => (this.node.offsetParent ? this.#actions() : []));
  }

  /** What Ctrl K finds while the tab is in front. */
  #actions() {
    return [
      { label: "Run", keys: "Ctrl Enter", run: () => void this.run() },
      { label: "Run all", keys: "Ctrl Shift Enter", run: () => void this.runAll() },
      { label: "Explain", keys: "Ctrl Shift E", run: () => void this.explain(false) },
      { label: "Explain with measured times …", run: () => void this.explain(true) },
      { label: "Format", keys: "Ctrl Shift F", run: () => void this.format() },
      { label: "Save the query", keys: "Ctrl S", run: () => void this.saved.save() },
      { label: "Copy the link of the saved query", keys: "Alt L", run: () => void this.saved.copyLink() },
      { label: "Find in the text", keys: "Ctrl F", run: () => void this.find(false) },
      { label: "Find and replace", keys: "Ctrl H", run: () => void this.find(true) },
      { label: "Your statements", keys: "Ctrl Shift H", run: () => void this.history() },
      { label: "Go to the text", run: () => this.editor.area.focus() },
    ];
  }

  #source() {
    const found = data.sources.peek().find(({ name }) => name === this.#tab.peek().source);
    return { language: found?.language ?? "sql", dialect: found?.dialect ?? "" };
  }

  #place() {
    const { source, database, schema } = this.#tab.peek();
    return { source, database, schema };
  }

  /** The same object while the parameters are the same: their form stays, and who types in it. */
  #parameters() {
    const found = this.#parametersInSight();
    const { ordered, names } = this.#known;
    const isSame = found.ordered === ordered && found.names.join("\n") === names.join("\n");
    return isSame ? this.#known : (this.#known = found);
  }

  #parametersInSight() {
    const { editor, judging } = this;
    const text = editor.text.value;
    const found = judging.statement.value;
    if (!/[:$?]/.test(text)) return NONE;
    const { from, to } = editor.selection.value;
    if (from < to) return parametersIn(editor.lines, from, to, this.#source());
    if (found && judging.isFresh.value) return parametersIn(editor.lines, found.start, found.end, this.#source());
    return parametersIn(editor.lines, ...editor.lines.around(to), this.#source());
  }

  /** Errors and hidden characters in the text; the statement that would run at its lines' numbers. */
  #marks() {
    const { editor, judging, runs } = this;
    effect(() => {
      const text = editor.text.value;
      const marks = hiddenIn(text).map((at) => ({ from: at, to: at + 1, kind: "hidden" }));
      const at = [this.#errorAt(), runs.shown ? errorPlace(runs.shown, text) : null];
      for (const from of at) if (from !== null) marks.push({ ...wordAt(text, from), kind: "error" });
      editor.marks.value = marks;
      const found = judging.statement.value;
      const { last } = judging;
      editor.current.value = found && last.value && last.value.judgement.statements.length > 1 && judging.isFresh.value
        ? trimmed(text, found) : null;
      if (at.some((each) => each !== null)) editor.area.setAttribute("aria-invalid", "true");
      else editor.area.removeAttribute("aria-invalid");
      editor.draw();
    });
  }

  #errorAt() {
    const error = this.judging.last.value?.judgement.error;
    return error && this.judging.isFresh.value && error.at !== null ? error.at : null;
  }

  // What can be done

  /** @param {KeyboardEvent} event */
  #press(event) {
    const control = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && control && !event.altKey) void (event.shiftKey ? this.runAll() : this.run());
    else if (event.key.toLowerCase() === "e" && control && event.shiftKey) void this.explain(false);
    else if (event.key.toLowerCase() === "h" && control && event.shiftKey) void this.history();
    else if (event.key.toLowerCase() === "f" && control && event.shiftKey) void this.format();
    else if (event.key.toLowerCase() === "f" && control && !event.altKey) void this.find(false);
    else if ((event.key.toLowerCase() === "h" && event.ctrlKey) || (event.code === "KeyF" && event.metaKey && event.altKey)) void this.find(true);
    else if (event.key === "F3" && this.#finding.peek()) (event.shiftKey ? this.#finding.peek()?.previous : this.#finding.peek()?.next)?.();
    else if (event.key.toLowerCase() === "s" && control && !event.shiftKey && !event.altKey) void this.saved.save();
    else if (event.code === "KeyL" && event.altKey && !control && !event.shiftKey) void this.saved.copyLink();
    else if (event.key === "Escape" && this.runs.isBusy.peek() && !dialogIsOpen()) {
      this.runs.cancel();
      return false;
    } else return false;
    return true;
  }

  /** What is to run: the statements, or where the server sees none, the text as it is: it will say why.
   * @param {string} text @param {Judged[]} statements @param {number} from where the text begins in the
   * editor's @returns {Part[]} */
  #parts(text, statements, from) {
    return (statements.length ? statements : [{ start: 0, end: text.length }]).map(({ start, end }) => {
      const statement = text.slice(start, end).trim();
      const begin = from + start + text.slice(start, end).indexOf(statement);
      // In lines of its own: the text in the editor may be another one by now.
      const params = this.#values.of(this.#parametersOf(statement));
      return { statement, from: begin, params: Array.isArray(params) && !params.length ? null : params, types: this.saved.types };
    }).filter(({ statement }) => statement);
  }

  /** @param {string} statement */
  #parametersOf(statement) {
    const source = this.#source();
    const lines = new TextLines(lexerOf(source.language, source.dialect));
    lines.update(statement);
    return parametersIn(lines, 0, statement.length, source);
  }

  /** The names of the parameters of the whole text. */
  #allNames() {
    const { ordered, names } = this.#parametersOf(this.editor.text.peek());
    return ordered ? [] : names;
  }

  /** The selection's statements, or the one at the caret. @returns {Promise<Part[]>} */
  async #wanted() {
    const { editor, judging } = this;
    editor.look();
    const { from, to } = editor.selection.peek();
    const selected = editor.text.peek().slice(from, to);
    if (selected.trim()) return this.#parts(selected, await judging.upTo(selected, selected.length), from);
    // The caret and the text count as they were when the key was pressed.
    const text = editor.text.peek();
    const found = statementAt(await judging.upTo(text, to), to);
    return this.#parts(text, found ? [found] : [], 0);
  }

  async run() {
    await this.#try(async () => {
      const parts = await this.#wanted();
      if (!this.#asksFor(parts)) await this.#start(parts);
    });
  }

  /** Whether a parameter has no value yet. It is asked for once: run again, and it is the empty text.
   * @param {Part[]} parts */
  #asksFor(parts) {
    const missing = parts.flatMap(({ statement }) => this.#parametersOf(statement).names).filter((name) => !this.#values.isGiven(name));
    const field = missing.length ? this.node.querySelector(`[id="${fieldId(missing[0])}"]`) : null;
    if (!(field instanceof HTMLElement)) return false;
    for (const name of missing) this.#values.set(name, "");
    field.focus();
    tell(`${missing[0].replace(/^(?=\p{L}|_)/u, ":")} has no value yet. Type it, or run again with the empty text.`);
    return true;
  }

  async runAll() {
    await this.#try(async () => {
      const text = this.editor.text.peek();
      const parts = this.#parts(text, await this.judging.upTo(text, text.length), 0);
      if (!this.#asksFor(parts)) await this.#start(parts);
    });
  }

  /** @param {Part[]} parts */
  async #start(parts) {
    if (!parts.length) {
      tell("There is no statement here.");
      return;
    }
    this.#plan.value = null;
    this.saved.noteRun();
    await this.runs.start(parts, this.#place(), Number(limit.value) || null);
    const last = this.runs.items.peek().at(-1);
    if (last) sayEnd(last);
    // What had the focus may be gone with the question.
    if (document.activeElement === document.body && this.node.offsetParent) this.editor.area.focus();
  }

  /** @param {() => Promise<void>} work */
  async #try(work) {
    this.#trouble.value = "";
    try {
      await work();
    } catch (error) {
      if (!isSuperseded(error)) this.#trouble.value = errorText(error);
    }
  }

  /** @param {boolean} analyze whether the statement is executed for it */
  async explain(analyze) {
    await this.#try(async () => {
      const [part] = await this.#wanted();
      if (!part) return;
      if (analyze && !(await this.#consents(part.statement))) return;
      const { statement, params, types } = part;
      this.#plan.value = { plan: null, error: "", statement };
      try {
        const plan = await post("data/explain", { ...this.#place(), statement, params, types, analyze });
        this.#plan.value = { plan, error: "", statement };
        say("The plan is there.");
      } catch (error) {
        this.#plan.value = { plan: null, error: errorText(error), statement };
      }
    });
  }

  /** @param {string} statement */
  #consents(statement) {
    return ask({
      title: "Explain with measured times", action: "Execute and measure", kind: "danger", read: () => true,
      body: [
        h("p", {}, "To measure, the database executes the statement. What it changes is changed."),
        h("pre", { class: "statement", dir: "ltr", tabindex: "0", role: "region", "aria-label": "The statement" }, visible(statement)),
      ],
    });
  }

  /** Put each clause of the selection, or of the text, on a line. It is typed: it can be undone. */
  async format() {
    await this.#try(async () => {
      const { editor } = this;
      editor.look();
      const text = editor.text.peek();
      const selected = editor.selection.peek();
      const range = selected.from < selected.to ? selected : { from: 0, to: text.length };
      const part = text.slice(range.from, range.to);
      if (!part.trim()) return;
      const { statement } = await post("data/format", { ...this.#place(), statement: part });
      if (editor.text.peek() !== text) return;
      if (statement === part) {
        tell("The text stays as it is: it is formatted, or cannot be read.");
        return;
      }
      const end = range.from + statement.length;
      editor.replace(range, statement, { from: selected.from < selected.to ? range.from : end, to: end });
      say("The text is formatted.");
    });
  }

  /** Find in the text. @param {boolean} replaces whether to replace as well */
  async find(replaces) {
    if (!this.#finding.peek()) {
      const { findBar } = await import("./find_text.js");
      const [bar, stop] = root(() => findBar(this.editor, () => this.#leaveFinding()));
      this.#endFinding = stop;
      this.#finding.value = bar;
    }
    this.#finding.peek()?.open(replaces);
  }

  #leaveFinding() {
    this.#finding.value = null;
    this.#endFinding();
    this.editor.area.focus();
  }

  async history() {
    const entry = await chooseFromHistory(this.#tab.peek().source);
    const { editor } = this;
    if (!entry) {
      editor.area.focus();
      return;
    }
    const { length } = editor.text.peek();
    const gap = editor.text.peek().trim() ? (editor.text.peek().endsWith("\n") ? "\n" : "\n\n") : "";
    const from = length + gap.length;
    const to = from + entry.statement.replace(/\r\n?/g, "\n").length;
    editor.replace({ from: length, to: length }, gap + entry.statement, { from, to });
    editor.reveal(from, to);
  }

  // What is seen

  #bar() {
    /** @param {string} label @param {() => void} work @param {Record<string, any>} [more] */
    const button = (label, work, more = {}) => h("button", { onclick: work, ...more }, label);
    const menu = h("div", { class: "menu", popover: "auto", id: `more-${this.#id}` },
      h("button", { onclick: () => (menu.hidePopover(), void this.explain(true)) }, "Explain with measured times …"),
      h("label", { for: `limit-${this.#id}` }, "Rows at most"),
      h("select", { id: `limit-${this.#id}`, onchange: (/** @type {Event} */ event) => (limit.value = /** @type {HTMLSelectElement} */ (event.target).value) },
        LIMITS.map((value) => h("option", { value, selected: limit.value === value }, value ? number(Number(value)) : "as the source allows"))),
      h("h2", {}, "Keys"),
      h("dl", { class: "keys" }, KEYS.map(([key, does]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)))));
    return h("div", { class: "query-bar", role: "group", "aria-label": "Run" },
      h("button", { class: "primary", title: "Run the statement at the caret, or the selection (Ctrl Enter)", onclick: () => void this.run() },
        icon("run"), "Run"),
      button("Run all", () => void this.runAll(), { title: "Run all statements in order, as far as they succeed (Ctrl Shift Enter)" }),
      button("Explain", () => void this.explain(false), { title: "Show the plan (Ctrl Shift E)" }),
      button("Format", () => void this.format(), { title: "Put each clause on a line of its own (Ctrl Shift F)" }),
      button("Save", () => void this.saved.save(), { title: "Save the text under a name, or as a new version (Ctrl S)" }),
      button("History", () => void this.history(), { title: "Your statements (Ctrl Shift H)" }),
      h("button", { popovertarget: `more-${this.#id}`, "aria-label": "More" }, "…"), menu,
      h("span", { class: "query-place" }, () => sourceChip(data.source(this.#tab.value.source)),
        () => (this.#tab.value.schema ? h("span", { class: "note" }, isolated(this.#tab.value.schema)) : null)));
  }

  #judgedLine() {
    const { editor, judging, text } = this;
    const content = () => {
      if (judging.problem.value) return h("span", { class: "bad" }, prose(judging.problem.value));
      const { last } = judging;
      if (!last.value) return h("span", {}, editor.text.value.trim() ? "…" : "Ctrl Enter runs, Ctrl Space suggests.");
      const { error, statements } = last.value.judgement;
      const found = judging.statement.value;
      const at = found ? statements.indexOf(found) + 1 : 0;
      return [
        statements.length > 1 ? h("span", { class: "note" }, judging.isPartial.value ? "Of many: " : `${number(at)} of ${number(statements.length)}: `) : null,
        error ? h("span", { class: "bad" }, errorWhere(editor, error.at), prose(error.message)) : null,
        found && !error ? [h("span", { class: `does effect-${found.effect.replace(/[^a-z]/g, "")}` }, visible(doesText(found))),
          h("span", { "aria-hidden": "true" }, " · "), h("span", { class: "sr" }, ", "),
          h("span", { class: `verdict v-${found.verdict.replace(/[^a-z]/g, "")}` }, visible(verdictText(found)))] : null,
      ];
    };
    const hidden = computed(() => hiddenIn(editor.text.value).length);
    return h("div", { class: "judged" },
      h("p", { id: `judged-${this.#id}`, class: () => (judging.isFresh.value ? "judged-text" : "judged-text stale") }, content,
        () => (hidden.value ? h("span", { class: "doubt" }, ` ${counted(hidden.value, "character")} that ${hidden.value === 1 ? "is" : "are"} not visible or reorder${hidden.value === 1 ? "s" : ""} text.`) : null)),
      h("p", { class: "judged-end" },
        () => (editor.leaving.value ? h("strong", {}, "Tab leaves the editor") : null),
        () => (text.problem.value ? h("span", { class: "bad" }, "Not saved: ", prose(text.problem.value)) : h("span", {}, text.isSaved.value ? "Saved" : "…")),
        () => {
          editor.text.value;
          const { line, column } = editor.lines.placeOf(editor.selection.value.to);
          return h("span", { class: "caret-place", title: "Line, column" }, `${line}:${column}`);
        }));
  }

  /** Between the text and the results: moved by the pointer or by keys. */
  #divider() {
    const { node } = this.editor;
    /** @param {number} height */
    const set = (height) => {
      const most = Math.max(LEAST_HEIGHT, (this.node?.clientHeight ?? 600) - 160);
      const next = Math.round(Math.min(Math.max(LEAST_HEIGHT, height), most));
      node.style.height = `${next}px`;
      heights.set(this.#id, next);
      divider.setAttribute("aria-valuenow", String(next));
      divider.setAttribute("aria-valuemax", String(Math.round(most)));
    };
    const divider = h("div", {
      class: "divider", role: "separator", tabindex: "0", "aria-orientation": "horizontal", "aria-label": "Height of the text",
      "aria-valuemin": String(LEAST_HEIGHT), "aria-valuenow": "200", "aria-valuemax": "1000",
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const by = { ArrowUp: -24, ArrowDown: 24, PageUp: -120, PageDown: 120, Home: -1e6, End: 1e6 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        set(node.clientHeight + by);
      },
      onpointerdown: (/** @type {PointerEvent} */ event) => {
        divider.setPointerCapture(event.pointerId);
        const [start, height] = [event.clientY, node.clientHeight];
        divider.onpointermove = (move) => set(height + move.clientY - start);
        divider.onpointerup = () => (divider.onpointermove = null);
        event.preventDefault();
      },
    });
    return divider;
  }

  #restoreHeight() {
    const height = heights.get(this.#id);
    if (height) this.editor.node.style.height = `${height}px`;
  }

  #results() {
    const { runs, editor } = this;
    const actions = {
      again: (/** @type {RunItem} */ item) => void this.#try(() => this.#start([item.part])),
      cancel: () => runs.cancel(),
      goTo: (/** @type {number} */ at) => editor.reveal(at),
      plot: { spec: this.text.chart, isShown: runs.isChart },
    };
    return h("div", { class: "results" },
      () => (this.#trouble.value ? h("p", { class: "error", role: "alert" }, prose(this.#trouble.value)) : null),
      keyed(() => `${this.#plan.value !== null}`, () => (this.#plan.peek() ? this.#planPart() : null)),
      h("div", { class: "runs-place", hidden: () => this.#plan.value !== null },
        runsView(runs, actions, () => editor.text.value),
        () => (runs.items.value.length ? null : h("p", { class: "nothing-run note" }, "Rows appear here."))));
  }

  #planPart() {
    return h("section", { class: "plan-part", "aria-label": "Plan" },
      h("div", { class: "run-line" }, h("strong", {}, "Plan"),
        () => (this.#plan.value && !this.#plan.value.plan && !this.#plan.value.error ? h("span", {}, "Asking the database …") : null),
        h("button", { class: "small quiet", onclick: () => (this.#plan.value = null) }, icon("close"), "Close the plan")),
      () => (this.#plan.value?.error ? h("p", { class: "error", role: "alert" }, prose(this.#plan.value.error)) : null),
      () => (this.#plan.value?.plan ? planView(this.#plan.value.plan) : null));
  }
}

/** @type {Map<string, number>} */
const heights = new Map();

const KEYS = [
  ["Ctrl Enter", "run the statement at the caret, or the selection"],
  ["Ctrl Shift Enter", "run all, as far as they succeed"],
  ["Escape", "cancel what runs"],
  ["Ctrl Space", "suggestions"],
  ["Ctrl /", "make lines comments, or no comments"],
  ["Tab, Shift Tab", "indent, less; after Escape: leave the text"],
  ["Ctrl Shift E", "the plan"],
  ["Ctrl Shift F", "put each clause on a line of its own"],
  ["Ctrl F, Ctrl H", "find; find and replace"],
  ["F3, Shift F3", "the next place, the one before"],
  ["Ctrl Shift H", "your statements"],
  ["C, in the rows", "a chart of them, or the rows again"],
  ["Ctrl S", "save the text as a query, or as its new version"],
  ["Alt L", "copy the link of the saved query"],
];

/** @param {string} text @param {Judged} judged */
function trimmed(text, { start, end }) {
  const part = text.slice(start, end);
  const to = start + part.trimEnd().length;
  return { from: Math.min(to, start + part.length - part.trimStart().length), to };
}

/** @param {Editor} editor @param {number | null} at */
function errorWhere(editor, at) {
  if (at === null) return "";
  const { line, column } = editor.lines.placeOf(at);
  return `Line ${line}, column ${column}: `;
}

/** The word at a place, or the character there, or the one before at an end.
 * @param {string} text @param {number} at */
function wordAt(text, at) {
  const from = Math.min(at, text.length);
  const word = /^[\p{L}\p{N}_$]+/u.exec(text.slice(from, from + 80))?.[0].length ?? 0;
  if (word) return { from, to: from + word };
  if (from < text.length && text[from] !== "\n") return { from, to: from + 1 };
  const before = /[^\s]\s*$/.exec(text.slice(Math.max(0, from - 200), from))?.[0].length ?? 1;
  return { from: Math.max(0, from - before), to: Math.max(1, from - before + 1) };
}

effect(() => {
  // Another person must find nothing of this one.
  if (session.value !== null) return;
  for (const id of [...kept.keys()]) forgetTab(id);
  heights.clear();
});
