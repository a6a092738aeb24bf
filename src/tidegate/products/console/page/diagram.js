/** A tab with the diagram of a schema, or of a table and its neighbours. */

import { sourceChip } from "./card.js";
import { data } from "./data_state.js";
import { Scene } from "./diagram_scene.js";
import { DiagramState } from "./diagram_state.js";
import { h, keyed, loadStyle } from "./dom.js";
import { icon } from "./icons.js";
import { effect, signal } from "./signals.js";
import { tell } from "./state.js";
import { counted, isolated, number, prose } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */

const MOVE = 20;
const PAN = 90;
let menus = 0;

/** @param {import("./signals.js").Signal<DataTab>} tab */
export function diagramTab(tab) {
  void loadStyle("diagram.css");
  const state = new DiagramState(tab);
  const panel = signal(false);
  return h("div", { class: "diagram" },
    tools(state, tab.peek()),
    () => (state.error.value
      ? h("p", { class: "error", role: "alert" }, prose(state.error.value), " ",
        h("button", { class: "small", onclick: () => void state.read() }, "Try again")) : null),
    () => (state.note.value ? h("p", { class: "notice", role: "status" }, state.note.value) : null),
    keyed(() => state.choosing.value || Boolean(state.facts.value?.choose), () =>
      (state.choosing.peek() || state.facts.peek()?.choose ? choice(state) : sheet(state, panel))));
}

/** @param {DiagramState} state */
function choice(state) {
  const view = signal(/** @type {Node | null} */ (null));
  const load = async () => (await import("./diagram_choose.js")).chooser;
  load().then((chooser) => (view.value = chooser(state)), (caught) => (state.error.value = String(caught)));
  return () => view.value;
}

/** @param {DiagramState} state @param {import("./signals.js").Signal<boolean>} panel */
function sheet(state, panel) {
  const tablePanel = signal(/** @type {typeof import("./diagram_panel.js").tablePanel | null} */ (null));
  const load = async () => (await import("./diagram_panel.js")).tablePanel;
  const show = async () => {
    panel.value = true;
    tablePanel.value ??= await load();
  };
  const scene = new Scene({
    choose: (index) => {
      state.pick(index);
      if (index >= 0) void show();
    },
    open: (index) => open(state, index),
    moved: (index, spot) => state.move(index, spot),
  });
  const help = `diagram-keys-${(menus += 1)}`;
  const area = h("div", {
    class: "diagram-sheet", tabindex: "0", role: "application", "aria-roledescription": "diagram",
    "aria-label": () => `Diagram of ${counted(state.facts.value?.tables.length ?? 0, "table")}`, "aria-describedby": help,
    onkeydown: (/** @type {KeyboardEvent} */ event) => press(event, state, scene, { show, hide: () => (panel.value = false) }),
  }, scene.node,
  h("p", { class: "sr", id: help },
    "Arrows choose a table, with Shift they move it, with Control they move the sheet. N goes along the keys, Enter opens the table, " +
    "Space shows its columns, plus and minus change the size, 0 shows all."));
  let isFitted = false;
  effect(() => {
    const shown = state.shown.value;
    scene.show(shown?.model ?? { boxes: [], wires: [] }, shown?.spots ?? []);
    if (!shown || isFitted) return;
    isFitted = true;
    requestAnimationFrame(() => scene.fit());
  });
  effect(() => scene.mark(state.chosen.value, state.found.value));
  effect(() => {
    const index = state.chosen.value;
    if (index >= 0) scene.reveal(index);
  });
  sheets.set(state, { scene, area });
  return h("div", { class: () => `diagram-main ${panel.value && state.chosen.value >= 0 ? "has-panel" : ""}` },
    area,
    keyed(() => (panel.value && tablePanel.value && state.shown.value ? state.chosen.value : -1), () => (
      panel.peek() && tablePanel.peek() && state.chosen.peek() >= 0 ? tablePanel.peek()?.(state, state.chosen.peek(), {
        close: () => {
          panel.value = false;
          area.focus();
        },
        go: (index) => {
          state.pick(index);
          toPanel();
        },
      }) : null)));
}

const toPanel = () => /** @type {HTMLElement | null} */ (document.querySelector(".tab-panel:not([hidden]) .diagram-panel"))?.focus();

/** The drawing of each diagram that is shown. @type {WeakMap<DiagramState, { scene: Scene, area: HTMLElement }>} */
const sheets = new WeakMap();

/** @param {DiagramState} state @param {number} index */
function open(state, index) {
  const facts = state.facts.peek()?.tables[index];
  if (facts) void data.openTable({ ...state.place, schema: facts.schema }, facts.name);
}

/** @param {KeyboardEvent} event @param {DiagramState} state @param {Scene} scene
 * @param {{ show: () => Promise<void>, hide: () => void }} panel */
function press(event, state, scene, panel) {
  if (event.altKey || event.metaKey || event.target !== event.currentTarget) return;
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  const at = state.chosen.peek();
  const shown = state.shown.peek();
  if (step) {
    const [dx, dy] = step;
    if (event.ctrlKey) scene.pan(dx * PAN, dy * PAN);
    else if (event.shiftKey && at >= 0 && shown) {
      const [x, y] = shown.spots[at];
      state.move(at, [x + dx * MOVE, y + dy * MOVE]);
      scene.reveal(at);
    } else state.step(dx, dy);
  } else if (event.ctrlKey) return;
  else if (event.key === "+" || event.key === "=") scene.zoom(1.25);
  else if (event.key === "-") scene.zoom(0.8);
  else if (event.key === "0") scene.fit();
  else if (event.key === "n" || event.key === "N") state.follow(event.shiftKey ? -1 : 1);
  else if (event.key === "Enter" && at >= 0) open(state, at);
  else if (event.key === " " && at >= 0) {
    void panel.show().then(toPanel);
  } else if (event.key === "Escape" && at >= 0) {
    panel.hide();
    state.pick(-1);
  } else return;
  event.preventDefault();
}

/** @param {DiagramState} state @param {DataTab} tab */
function tools(state, tab) {
  const search = h("input", { type: "search", placeholder: "Search the diagram", "aria-label": "Search the tables and columns of the diagram",
    oninput: () => (state.search.value = search.value),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      const found = [...state.found.peek()];
      const next = found[(found.indexOf(state.chosen.peek()) + 1) % Math.max(1, found.length)];
      if (next === undefined) tell("Nothing of that name is in the diagram.");
      else {
        state.pick(next);
        sheets.get(state)?.scene.reveal(next, true);
      }
    } });
  const columns = h("input", { type: "checkbox", checked: () => state.mode.value === "all",
    onchange: () => state.setMode(columns.checked ? "all" : "keys") });
  const guessed = h("input", { type: "checkbox", checked: () => state.guessed.value, onchange: () => state.setGuessed(guessed.checked) });
  /** @param {Parameters<typeof icon>[0]} picture @param {string} label @param {() => void} does */
  const button = (picture, label, does) => h("button", { class: "small", title: label, "aria-label": label, onclick: does }, icon(picture));
  const drawing = () => sheets.get(state)?.scene;
  return h("header", { class: "diagram-tools", role: "group", "aria-label": "Diagram" },
    () => sourceChip(data.source(tab.source)),
    h("h2", { class: "sr" }, "Diagram of ", isolated(tab.table ?? tab.schema ?? tab.source)),
    h("span", { class: "note" }, () => {
      const facts = state.facts.value;
      if (!facts) return state.busy.value ? "Loading …" : "";
      const guesses = facts.links.filter((link) => link.guessed).length;
      const keys = facts.links.length - guesses;
      return facts.choose ? "" : `${counted(facts.tables.length, "table")}, ${counted(keys, "key")}, ${number(guesses)} guessed`;
    }),
    h("span", { class: "search" }, icon("search"), search),
    h("label", { class: "check" }, columns, "All columns"),
    h("label", { class: "check" }, guessed, "Guessed keys"),
    h("button", { class: "small", title: "Have values decide on the guessed keys: reads some values of up to 40 tables",
      onclick: () => void state.compare() }, "Compare values"),
    button("minus", "Smaller", () => drawing()?.zoom(0.8)), button("add", "Larger", () => drawing()?.zoom(1.25)),
    button("fit", "Show all", () => drawing()?.fit()),
    button("arrange", "Arrange all tables again", () => void state.layOut({ afresh: true }).then(() => drawing()?.fit())),
    button("refresh", "Read the tables again", () => void state.read()),
    button("filter", "Choose tables", () => void (async () => {
      state.only.value = null;
      await state.read();
      state.choosing.value = !state.facts.peek()?.choose;
    })()),
    ...exports(state, tab));
}

/** @param {DiagramState} state @param {DataTab} tab */
function exports(state, tab) {
  const id = `diagram-export-${(menus += 1)}`;
  /** @param {"svg" | "png" | "mermaid"} format */
  const save = async (format) => {
    menu.hidePopover();
    (await import("./diagram_export.js")).saveDiagram(state, tab, format);
  };
  const menu = h("div", { class: "menu export-menu", popover: "auto", id, "aria-label": "Save the diagram" },
    h("button", { class: "quiet small", onclick: () => void save("svg") }, "SVG"),
    h("button", { class: "quiet small", onclick: () => void save("png") }, "PNG"),
    h("button", { class: "quiet small", onclick: () => void save("mermaid") }, "Mermaid"));
  return [h("button", { class: "small", popovertarget: id }, icon("save"), "Export"), menu];
}
