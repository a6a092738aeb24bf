/** The chart of a run's rows. The server computes it from all of them; `chart.js` draws it. */

import { errorText, post } from "./api.js";
import { chartForm } from "./chart_form.js";
import { chartFigure } from "./chart.js";
import { h, keyed, loadStyle } from "./dom.js";
import { icon } from "./icons.js";
import { batch, effect, onEnd, signal, untracked } from "./signals.js";
import { say } from "./state.js";
import { counted, prose } from "./text.js";

/** @typedef {import("./chart_contract.js").ChartSpec} ChartSpec */
/** @typedef {import("./chart_contract.js").MadeChart} MadeChart */
/** @typedef {import("./runs.js").RunItem} RunItem */

const NOTHING = "No column of these rows can be drawn.";

/** @param {RunItem} item @param {import("./signals.js").Signal<ChartSpec | null>} spec kept with the tab,
 * null for one that fits the columns @param {() => void} close goes back to the rows */
export function chartView(item, spec, close) {
  const made = signal(/** @type {MadeChart | null} */ (null));
  const problem = signal("");
  const turn = signal(0);
  /** What the form says, also while it is not drawn or was refused. */
  const formed = signal(/** @type {ChartSpec | null} */ (null));
  let asked = "";
  let going = new AbortController();
  let first = true;
  const style = loadStyle("chart.css");
  onEnd(() => going.abort());
  /** Draw this one; it is kept once the server has accepted it. @param {ChartSpec | null} wanted */
  const load = async (wanted) => {
    going.abort();
    going = new AbortController();
    const { signal: ended } = going;
    try {
      const [found] = await Promise.all([post(`${item.path}/chart`, { spec: wanted }, ended), style]);
      if (ended.aborted) return;
      batch(() => {
        asked = JSON.stringify(wanted);
        spec.value = wanted;
        formed.value = found.spec;
        problem.value = "";
        made.value = found;
        turn.value += 1;
      });
      say(found.chart ? `A chart of ${counted(found.chart.marks.length, "mark")}.` : NOTHING);
    } catch (error) {
      if (!ended.aborted) problem.value = errorText(error);
    }
  };
  effect(() => {
    const wanted = spec.value;
    if (JSON.stringify(wanted) === asked) return;
    untracked(() => void load(wanted));
  });
  const drawn = () => {
    const found = made.peek();
    if (!found) return h("p", { class: "note" }, "The chart is computed …");
    if (!found.chart) return h("p", { class: "note" }, NOTHING);
    const figure = chartFigure(found.chart, { label: "Chart", name: "chart", say });
    onEnd(() => figure.stop());
    if (first) queueMicrotask(() => figure.focus());
    first = false;
    return figure.node;
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select")) return;
    if (event.key !== "c" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    close();
  };
  return h("section", { class: "chart-view", "aria-label": "Chart of the rows", onkeydown: press },
    h("div", { class: "chart-head" },
      h("button", { class: "small", onclick: close }, icon("table"), "Rows", h("kbd", { "aria-hidden": "true" }, "c")),
      () => (spec.value ? h("button", { class: "small", onclick: () => (spec.value = null) }, "Choose by the columns") : null)),
    chartForm(() => formed.value, () => item.run.value?.columns ?? [], (next, isText) => {
      if (!isText) formed.value = next;
      void load(next);
    }),
    () => (problem.value ? h("p", { class: "error", role: "alert" }, prose(problem.value)) : null),
    h("div", { class: "chart-place" }, keyed(() => turn.value, drawn)));
}
