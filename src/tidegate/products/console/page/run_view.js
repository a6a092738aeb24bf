/** One run: how far it is, its question if it asks, its rows or why there are none. */

import { problems, putBack } from "./answer.js";
import { errorText, get } from "./api.js";
import { cellPanel } from "./cell_panel.js";
import { data } from "./data_state.js";
import { startEditing } from "./edit_start.js";
import { EditedRows } from "./edited_rows.js";
import { h, keyed } from "./dom.js";
import { fileSaver } from "./file_saver.js";
import { grid } from "./grid.js";
import { icon } from "./icons.js";
import { questionView } from "./question_view.js";
import { computed, effect, onEnd, signal, untracked } from "./signals.js";
import { cards, say, tell } from "./state.js";
import { counted, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./runs.js").RunItem} RunItem */
/** @typedef {import("./query_contract.js").DataRun} DataRun */
/** What the tab does for a run.
 * @typedef {{ again: (item: RunItem) => void, cancel: () => void, goTo: (offset: number) => void,
 *   plot?: { spec: import("./signals.js").Signal<import("./chart_contract.js").ChartSpec | null>,
 *     isShown: import("./signals.js").Signal<boolean> } }} Actions `plot`: the chart that may be shown in place of rows */

const TICK_MS = 100;
/** A value of a key; bytes by their digits, if all are there. @param {import("./data_contract.js").DataCell | undefined} value */
const keyText = (value) => (value && typeof value === "object" && "binary" in value && value.text.length === value.binary * 2 ? value.text : value);
const FORMATS = [["csv", "CSV"], ["json", "JSON"], ["jsonl", "JSON lines"], ["sql", "SQL"]];

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${number(Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
}

/** Where the error is in the text of the editor, while the statement is there as it ran.
 * @param {RunItem} item @param {string} text @returns {number | null} */
export function errorPlace(item, text) {
  const at = item.run.value?.at;
  const { statement } = item.part;
  if (at === null || at === undefined || item.run.value?.state !== "failed" || !statement) return null;
  // Of a run from before the page was loaded, the place is not known.
  const from = item.part.from < 0 ? text.indexOf(statement) : item.part.from;
  return from >= 0 && text.startsWith(statement, from) ? from + Math.min(at, statement.length) : null;
}

/** @param {RunItem} item @param {Actions} actions @param {() => string} text of the editor */
export function runView(item, actions, text) {
  const state = computed(() => (item.problem.value ? "refused" : item.run.value?.state ?? "running"));
  return h("div", { class: "run" },
    keyed(() => state.value, () => (state.peek() === "running" ? runningLine(item, actions) : h("div", { class: "run-line" }, endLine(item, actions)))),
    () => {
      const warnings = item.run.value?.warnings ?? [];
      return warnings.length ? h("ul", { class: "warnings" }, warnings.map((each) => h("li", {}, icon("warning"), h("span", {}, prose(each))))) : null;
    },
    keyed(() => `${state.value} ${item.run.value?.approval ?? ""}`, () => question(item)),
    keyed(() => state.value, () => (["failed", "refused", "unknown"].includes(state.peek()) ? failure(item, actions, text) : null)),
    rowsPart(item, actions));
}

/** @param {RunItem} item @param {Actions} actions */
function runningLine(item, actions) {
  const passed = signal(Date.now() - item.began);
  const timer = setInterval(() => (passed.value = Date.now() - item.began), TICK_MS);
  onEnd(() => clearInterval(timer));
  const progress = () => {
    const found = item.run.value?.progress;
    if (!found) return null;
    const known = found.done !== null && found.total !== null && found.total > 0;
    return h("span", { class: "progress" },
      known ? h("progress", { max: found.total, value: found.done, "aria-label": "Progress" }) : null,
      h("span", {}, visible(found.text || (known ? `${number(Number(found.done))} of ${number(Number(found.total))}` : ""))));
  };
  return h("div", { class: "run-line running" },
    h("span", { class: "spin", "aria-hidden": "true" }),
    h("span", {}, () => (item.isCancelling.value ? "Cancelling …" : "Running")),
    h("span", { class: "elapsed" }, () => duration(passed.value)),
    () => (item.run.value?.row_count ? h("span", {}, `${counted(item.run.value.row_count, "row")} so far`) : null),
    progress,
    h("button", { class: "small", disabled: () => item.isCancelling.value, onclick: () => actions.cancel() },
      "Cancel", h("kbd", { "aria-hidden": "true" }, "Esc")));
}

/** @param {RunItem} item @param {Actions} actions */
function endLine(item, actions) {
  if (item.problem.peek()) return h("strong", { class: "bad" }, "Not run");
  return () => {
    const run = /** @type {DataRun} */ (item.run.value);
    const time = h("span", { class: "elapsed" }, duration(run.elapsed_ms));
    const word = { done: "", failed: "Failed", cancelled: "Cancelled", unknown: "Unknown whether it ran",
      asking: "Waits for a person's answer", running: "" }[run.state];
    const again = run.state === "cancelled" || run.state === "failed"
      ? h("button", { class: "small", onclick: () => actions.again(item) }, "Run again") : null;
    return [
      word ? h("strong", { class: run.state === "asking" ? "doubt" : "bad" }, word) : doneText(run),
      run.state === "asking" ? h("button", { class: "small", disabled: () => item.isCancelling.value, onclick: () => actions.cancel() },
        "Withdraw", h("kbd", { "aria-hidden": "true" }, "Esc")) : time,
      run.state === "cancelled" && run.message ? h("span", {}, prose(run.message)) : null,
      run.state !== "done" && run.columns.length && run.row_count ? h("span", {}, `${counted(run.row_count, "row")} came before`) : null,
      again, run.state === "done" ? undoButton(item) : null,
    ];
  };
}

/** @param {DataRun} run */
function doneText(run) {
  if (run.columns.length) {
    return [h("strong", {}, counted(run.row_count, "row")),
      run.truncated ? h("span", { class: "tag doubt" }, run.limit === run.row_count || run.limit === null
        ? "there are more" : `there are more; the limit is ${number(run.limit)}`) : null];
  }
  if (run.affected !== null) return h("strong", {}, `${counted(run.affected, "row")} changed`);
  return h("strong", {}, "Done");
}

/** @param {RunItem} item */
function undoButton(item) {
  const change = item.run.peek()?.change_id;
  const card = item.run.peek()?.approval;
  const key = card ?? `change ${change}`;
  if (!change) return null;
  const done = () => item.undone.value || (card && cards.all.value.get(card)?.run?.undone);
  return [
    () => (done() ? h("span", { class: "good" }, icon("check"), " The rows were put back") : h("button", {
      class: "small put-back",
      onclick: async () => (item.undone.value = (await putBack(change, key, Boolean(card))) || item.undone.peek()),
    }, icon("undo"), "Put these rows back")),
    () => (problems.value.get(key) ? h("span", { class: "error", role: "alert" }, prose(problems.value.get(key) ?? "")) : null),
  ];
}

/** The card of the question, to be answered here under the same rules as in the Inbox.
 * @param {RunItem} item */
function question(item) {
  const id = item.run.peek()?.approval;
  if (!id || item.run.peek()?.state !== "asking") return null;
  return questionView(id);
}

/** @param {RunItem} item @param {Actions} actions @param {() => string} text */
function failure(item, actions, text) {
  const run = item.run.peek();
  const message = item.problem.peek() || run?.message || "It failed without a message.";
  return h("div", { class: "error failure", role: "alert" },
    h("p", {}, prose(message)),
    run?.hint && !item.problem.peek() ? h("p", { class: "failure-hint" }, prose(run.hint)) : null,
    h("p", { class: "failure-more" },
      run?.code && !item.problem.peek() ? h("code", {}, visible(run.code)) : null,
      () => {
        const at = (void text(), errorPlace(item, text()));
        return at === null ? null : h("button", { class: "small", onclick: () => actions.goTo(at) }, "Go to the place");
      },
      item.problem.peek() && item.part.statement ? h("button", { class: "small", onclick: () => actions.again(item) }, "Run again") : null));
}

/** @param {RunItem} item @param {Actions} actions */
function rowsPart(item, actions) {
  const plots = actions.plot;
  const has = computed(() => Boolean(item.run.value?.columns.length) && !item.problem.value);
  const canPlot = computed(() => Boolean(plots) && has.value && item.run.value?.ended_at !== null && Boolean(item.run.value?.row_count));
  let isBack = false;
  const isChart = computed(() => canPlot.value && Boolean(plots?.isShown.value));
  return keyed(() => `${has.value} ${item.gone.value} ${isChart.value}`, () => {
    if (!has.peek()) return null;
    if (item.gone.peek()) {
      return h("div", { class: "run-gone" }, h("p", {}, "The server no longer holds these rows."),
        item.part.statement ? h("button", { onclick: () => actions.again(item) }, "Run again") : null);
    }
    if (plots && isChart.peek()) {
      return chartPart(item, plots.spec, () => {
        isBack = true;
        plots.isShown.value = false;
      });
    }
    const plot = () => {
      if (plots && canPlot.peek()) plots.isShown.value = true;
    };
    const opened = signal(/** @type {{ row: number, column: number } | null} */ (null));
    const form = signal(/** @type {import("./dom.js").Child} */ (null));
    const key = /** @type {number[]} */ ([]);
    const rows = new EditedRows(item.rows, (index) => {
      const values = key.map((at) => keyText(item.rows.rowAt(index)?.[at]));
      return values.every((value) => typeof value === "string") ? /** @type {string[]} */ (values) : [];
    });
    const made = grid({
      menu: () => (!plots ? [] : [{ label: "Plot the rows", keys: "C", disabled: !canPlot.peek(), run: plot }]),
      label: "Rows", rows, columns: () => item.run.value?.columns ?? [],
      onOpenCell: (row, column) => rows.rowAt(row) && (opened.value = { row, column }),
    });
    const edits = editing(item, made, rows, key, form);
    // The panel goes with the active cell once it is open.
    effect(() => {
      const { row, column } = made.active.value;
      if (opened.peek() && row >= 0 && rows.rowAt(row)) opened.value = { row, column };
    });
    const close = () => {
      opened.value = null;
      made.focus();
    };
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey || event.target !== made.node) return;
      event.preventDefault();
      plot();
    };
    if (isBack) queueMicrotask(() => made.focus());
    isBack = false;
    return [
      h("div", { class: "rows-view", onkeydown: press }, h("div", { class: () => `split ${opened.value || form.value ? "has-panel" : ""}` },
        h("div", { class: "grid-place" }, made.node),
        keyed(() => JSON.stringify(opened.value), () => (opened.peek() ? valuePanel(item, rows, opened.peek(), close) : null)),
        () => (opened.value ? null : form.value)), edits),
      () => (item.rows.error.value && !item.gone.value
        ? h("p", { class: "error", role: "alert" }, prose(errorText(item.rows.error.value)), " ",
          h("button", { class: "small", onclick: () => item.rows.retry() }, "Try again")) : null),
      h("div", { class: "run-foot" }, exportButtons(item),
        () => (canPlot.value ? h("button", { class: "small", title: "A chart of the rows (c)", onclick: plot }, icon("now"), "Chart", h("kbd", { "aria-hidden": "true" }, "c")) : null)),
    ];
  });
}

/** The chart of the rows, whose modules are loaded when the first is wanted.
 * @param {RunItem} item @param {import("./signals.js").Signal<import("./chart_contract.js").ChartSpec | null>} spec
 * @param {() => void} close */
function chartPart(item, spec, close) {
  const loaded = signal(/** @type {typeof import("./chart_view.js") | null} */ (null));
  void import("./chart_view.js").then((module) => (loaded.value = module), (error) => tell(errorText(error)));
  return h("div", { class: "chart-part" },
    keyed(() => loaded.value !== null, () => loaded.peek()?.chartView(item, spec, close) ?? null));
}

/** What edits a result over one table, where the operator may change the source.
 * @param {RunItem} item @param {ReturnType<typeof grid>} made @param {EditedRows} rows @param {number[]} key places
 * of the table's key among the columns @param {import("./signals.js").Signal<import("./dom.js").Child>} form */
function editing(item, made, rows, key, form) {
  const started = signal(/** @type {ReturnType<typeof startEditing> | null} */ (null));
  const may = data.sources.peek().find(({ name }) => name === item.place.source)?.may.write;
  const done = computed(() => item.run.value?.state === "done" && item.run.value.effect === "read");
  effect(() => {
    const tab = item.run.peek()?.tab;
    if (!may || !done.value || !tab) return;
    started.value = untracked(() => startEditing({
      tab, isQuery: true, source: item.place.source, grid: made, rows, name: "the result", panel: form,
      about: async () => {
        /** @type {import("./edit_contract.js").Editability} */
        const about = await get(`${item.path}/edits`);
        key.splice(0, key.length, ...about.key.map((name) => about.result?.findIndex(({ column }) => column === name) ?? -1));
        return about;
      },
      columns: () => [], refresh: () => {},
    }));
  });
  return () => started.value?.node() ?? null;
}

/** @param {RunItem} item @param {EditedRows} rows @param {{ row: number, column: number } | null} spot @param {() => void} close */
function valuePanel(item, rows, spot, close) {
  const column = spot && item.run.peek()?.columns[spot.column];
  if (!spot || !column) return null;
  return cellPanel({
    column, close, title: `Row ${number(spot.row + 1)}`, cell: rows.rowAt(spot.row)?.[spot.column] ?? null,
    read: spot.row < rows.above ? null : (signal) => item.cell(spot.row - rows.above, spot.column, signal),
  });
}

/** @param {RunItem} item */
function exportButtons(item) {
  const saver = fileSaver("data");
  return h("div", { class: "export" },
    h("span", {}, "Save as"),
    FORMATS.map(([format, label]) => h("button", {
      class: "small", "aria-label": `Save the rows as ${label}`,
      onclick: () => void saver.save({ run: item.run.peek()?.id, format }),
    }, label)),
    saver.node);
}

/** The tabs of several runs, and the one that is shown.
 * @param {import("./runs.js").TabRuns} runs @param {Actions} actions @param {() => string} text */
export function runsView(runs, actions, text) {
  /** @param {RunItem} item @param {number} index */
  const tab = (item, index) => h("button", {
    class: "run-tab", role: "tab", id: `${item.key}-tab`, "aria-selected": () => String(runs.chosen.value === item.key),
    "aria-controls": () => (runs.chosen.value === item.key ? `${item.key}-panel` : null),
    tabindex: () => (runs.chosen.value === item.key ? "0" : "-1"), onclick: () => (runs.chosen.value = item.key),
  }, h("span", { class: "run-number" }, index + 1), " ", h("span", { class: "run-name" }, isolated(shortName(item.part.statement))),
  () => h("span", { class: `run-state s-${stateOf(item)}` }, h("span", { class: "sr" }, ", "), stateOf(item)));
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const items = runs.items.peek();
    const at = items.findIndex(({ key }) => key === runs.chosen.peek());
    const to = { ArrowLeft: (at - 1 + items.length) % items.length, ArrowRight: (at + 1) % items.length, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    runs.chosen.value = items[to].key;
    document.getElementById(`${items[to].key}-tab`)?.focus();
  };
  effect(() => void (runs.chosen.value && queueMicrotask(() =>
    document.getElementById(`${runs.chosen.peek()}-tab`)?.scrollIntoView({ block: "nearest", inline: "nearest" }))));
  return h("div", { class: "runs" },
    keyed(() => runs.items.value.map(({ key }) => key).join(" "), () => {
      const items = runs.items.peek();
      return items.length > 1 ? h("div", { class: "run-tabs", role: "tablist", "aria-label": "Results", onkeydown: press }, items.map(tab)) : null;
    }),
    () => (runs.left.value ? h("p", { class: "note left" }, `${counted(runs.left.value, "statement")} after it ${runs.left.value === 1 ? "was" : "were"} not run.`) : null),
    keyed(() => runs.shown?.key ?? "", () => {
      const item = untracked(() => runs.shown);
      if (!item) return null;
      const several = runs.items.peek().length > 1;
      return h("div", { class: "run-panel", id: `${item.key}-panel`, ...(several ? { role: "tabpanel", "aria-labelledby": `${item.key}-tab` } : {}) },
        runView(item, actions, text));
    }));
}

/** The beginning of a statement, without comments before it. @param {string} statement */
const shortName = (statement) => statement.replace(/^(?:\s|--.*(?:\n|$)|\/\*[^]*?\*\/)+/, "").slice(0, 60).replace(/\s+/g, " ") || "Result";

/** @param {RunItem} item */
const stateOf = (item) => (item.problem.value ? "failed" : item.run.value?.state ?? "running");

/** Read out how a run ended. @param {RunItem} item */
export function sayEnd(item) {
  const run = item.run.peek();
  if (item.problem.peek() || !run) return;
  if (run.state === "done") {
    say(run.columns.length ? `${counted(run.row_count, "row")}.` : run.affected === null ? "Done." : `${counted(run.affected, "row")} changed.`);
  } else if (run.state === "cancelled") say("Cancelled.");
}
