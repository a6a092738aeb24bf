/**
 * A grid of any number of rows and columns: only the cells in sight are nodes, and those are used
 * again for others when they leave it. The focus stays on the grid itself; the cell that keys act on
 * is its active descendant.
 */

import { contextMenu } from "./context_menu.js";
import { cellClass, fillCell, tabSeparated } from "./data_cells.js";
import { h } from "./dom.js";
import { GridColumns } from "./grid_columns.js";
import { icon } from "./icons.js";
import { effect, onEnd, signal } from "./signals.js";
import { say, tell } from "./state.js";
import { counted, number, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataColumn} DataColumn */
/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** Rows by their place, those that are loaded; what they are for who edits them.
 * @typedef {{ count: import("./signals.js").Signal<number>, changed: import("./signals.js").Signal<number>,
 *   rowAt: (index: number) => DataCell[] | undefined, want: (first: number, last: number) => void,
 *   take: (first: number, last: number) => Promise<DataCell[][]>, stateOf?: (index: number) => string,
 *   isChanged?: (index: number, column: number) => boolean, numberOf?: (index: number) => number | null }} GridRows */
/** @typedef {{ top: number, bottom: number, left: number, right: number }} Range */
/** What edits the rows, once it is there. A key that it takes is not one of the grid's.
 * @typedef {{ press: (event: KeyboardEvent, spot: Spot, range: Range) => boolean, begin: (spot: Spot) => boolean,
 *   menu: (spot: Spot, range: Range) => import("./context_menu.js").MenuItem[],
 *   paste: (text: string, range: Range) => void, copied: (range: Range, text: string) => void }} GridEditing */
/** @typedef {{ row: number, column: number }} Spot row -1 is the head */
/** @typedef {{ node: HTMLElement, cells: Map<number, HTMLElement>, number: HTMLElement, index: number,
 *   shown: DataCell[] | undefined, state: string }} RowView */
/**
 * @typedef {{
 *   label: string, columns: () => DataColumn[], rows: GridRows,
 *   sort?: () => readonly { column: string, direction: "asc" | "desc" }[],
 *   canSort?: (column: number) => boolean, onSort?: (column: number, add: boolean) => void,
 *   onOpenCell?: (row: number, column: number) => void,
 *   menu?: (spot: Spot) => import("./context_menu.js").MenuItem[],
 *   followName?: (column: number) => string, onFollow?: (row: number, column: number) => void,
 *   isCounted?: () => boolean, toEnd?: (ended: AbortSignal) => Promise<number> }} GridOptions
 * `followName`: the table that a column refers to, or ""; `isCounted`: whether `rows.count` is all;
 * `toEnd`: loads rows up to the last, as far as it may at once, and gives how many there are.
 */

const ROW = 28;
const HEAD = 44;
const MARGIN_ROWS = 6;
const MARGIN_COLUMNS = 1;
const AHEAD_ROWS = 60;
const STEP = 16;
const MOST_COPIED = 200_000;
const EDITOR = 330;
const STATES = /** @type {Record<string, string>} */ ({
  insert: "new, not written yet", update: "changed, not written yet", delete: "to be deleted", stored: "written", gone: "not there any more",
});
let grids = 0;

/** @param {GridOptions} options */
export function grid(options) {
  const made = new Grid(options);
  return {
    node: made.box, active: made.active, focus: () => made.box.focus({ preventScroll: true }),
    redraw: () => made.draw(true), toTop: () => (made.box.scrollTop = 0), copy: () => made.copy(null),
    body: made.body, go: (/** @type {Spot} */ spot) => made.go(spot, false),
    placeOf: (/** @type {number} */ row, /** @type {number} */ column) => made.placeOf(row, column),
    edit: (/** @type {GridEditing | null} */ editing) => (made.editing = editing),
  };
}

class Grid {
  active = signal(/** @type {Spot} */ ({ row: 0, column: 0 }));
  /** @type {GridEditing | null} */
  editing = null;
  #anchor = /** @type {Spot} */ ({ row: 0, column: 0 });
  #columns = new GridColumns();
  #names = "";
  #fitted = false;
  #numberWidth = 48;
  /** @type {Map<number, RowView>} */
  #views = new Map();
  /** @type {RowView[]} */
  #free = [];
  /** @type {Map<number, HTMLElement>} */
  #heads = new Map();
  #drawn = { from: 0, to: 0, version: -1 };
  #id = `grid-${(grids += 1)}`;
  #going = new AbortController();
  #options;

  /** @param {GridOptions} options */
  constructor(options) {
    this.#options = options;
    this.corner = h("div", { class: "grid-corner", role: "columnheader", "aria-colindex": "1" },
      h("span", { class: "sr" }, "Row"));
    this.head = h("div", { class: "grid-head", role: "row", "aria-rowindex": "1" }, this.corner);
    this.body = h("div", { class: "grid-body" });
    this.box = h("div", {
      class: "grid-box", role: "grid", tabindex: "0", dir: "ltr", "aria-label": options.label,
      "aria-multiselectable": "true",
      onscroll: () => this.draw(false),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#press(event),
      oncopy: (/** @type {ClipboardEvent} */ event) => event.target === this.box && this.copy(event),
      onpaste: (/** @type {ClipboardEvent} */ event) => {
        if (!this.editing || event.target !== this.box) return;
        event.preventDefault();
        this.editing.paste(event.clipboardData?.getData("text/plain") ?? "", this.#range);
      },
      onpointerdown: (/** @type {PointerEvent} */ event) => this.#point(event),
      onclick: (/** @type {MouseEvent} */ event) => this.#click(event),
      ondblclick: (/** @type {MouseEvent} */ event) => this.#double(event),
    }, this.head, this.body);
    contextMenu(this.box, (event) => this.#menu(event));
    const size = new ResizeObserver(() => this.draw(false));
    size.observe(this.box);
    onEnd(() => size.disconnect());
    this.#follow();
  }

  /** Draw again when columns, rows, their number or the order have changed. */
  #follow() {
    const { columns, rows, sort } = this.#options;
    effect(() => {
      const all = columns();
      const names = JSON.stringify(all.map(({ name, type }) => [name, type]));
      if (names === this.#names) this.#columns.all = all;
      else {
        this.#names = names;
        this.#fit(all);
      }
      void sort?.();
      this.draw(true);
    });
    effect(() => {
      void rows.changed.value;
      if (!this.#fitted && rows.rowAt(0)) this.#fit(this.#columns.all);
      this.#measure(rows.count.value);
      this.draw(false);
    });
  }

  /** @param {DataColumn[]} all */
  #fit(all) {
    const { rows } = this.#options;
    this.#fitted = rows.rowAt(0) !== undefined;
    this.#columns.set(all, [...Array(40).keys()].map((index) => rows.rowAt(index)));
    this.#drawn.version = -1;
    this.#widen();
  }

  /** @param {number} count */
  #measure(count) {
    const numberWidth = 26 + 8 * String(Math.max(100, count)).length;
    if (numberWidth !== this.#numberWidth) this.#drawn.version = -1;
    this.#numberWidth = numberWidth;
    this.box.setAttribute("aria-rowcount", String(this.#options.isCounted?.() === false ? -1 : count + 1));
    this.box.setAttribute("aria-colcount", String(this.#columns.all.length + 1));
    this.body.style.height = `${count * ROW}px`;
    this.#widen();
    const { row, column } = this.active.peek();
    const last = { row: Math.min(row, count - 1), column: Math.min(column, this.#columns.all.length - 1) };
    if (count && (last.row !== row || last.column !== column) && last.column >= 0) {
      this.#anchor = last;
      this.active.value = last;
    }
  }

  #widen() {
    const width = `${this.#numberWidth + this.#columns.total}px`;
    this.head.style.width = width;
    this.body.style.width = width;
    this.corner.style.width = `${this.#numberWidth}px`;
  }

  /** @param {boolean} fresh whether what is drawn may show something else now */
  draw(fresh) {
    const { rows } = this.#options;
    const count = rows.count.peek();
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.box;
    const top = Math.floor(scrollTop / ROW);
    const bottom = Math.ceil((scrollTop + clientHeight) / ROW);
    const first = Math.max(0, Math.min(top, count) - MARGIN_ROWS);
    const last = Math.min(count, bottom + MARGIN_ROWS);
    const wide = this.#columns.all.length;
    const from = Math.max(0, this.#columns.at(scrollLeft) - MARGIN_COLUMNS);
    const to = Math.min(wide, this.#columns.at(scrollLeft + clientWidth) + 1 + MARGIN_COLUMNS);
    const moved = from !== this.#drawn.from || to !== this.#drawn.to ||
      this.#columns.version !== this.#drawn.version;
    this.#drawn = { from, to, version: this.#columns.version };
    if (fresh || moved) this.#drawHead(from, to);
    for (const [index, view] of this.#views) {
      if (index >= first && index < last) continue;
      this.#views.delete(index);
      this.#free.push(view);
    }
    let before = /** @type {HTMLElement | null} */ (null);
    for (let index = first; index < last; index += 1) {
      const found = this.#views.get(index);
      const view = found ?? this.#take(index, before);
      const other = !found || fresh || moved;
      if (other || view.shown !== rows.rowAt(index)) this.#drawRow(view, other);
      else if (rows.stateOf && view.state !== rows.stateOf(index)) this.#drawState(view);
      before = view.node;
    }
    for (const view of this.#free.splice(0)) view.node.remove();
    this.#mark();
    if (count) rows.want(Math.max(0, top - AHEAD_ROWS), bottom + AHEAD_ROWS);
  }

  /** A row that is shown, made of one that has left.
   * @param {number} index @param {HTMLElement | null} before the row before it @returns {RowView} */
  #take(index, before) {
    let view = this.#free.pop();
    if (!view) {
      const numberCell = h("div", { class: "grid-number", role: "rowheader", "aria-colindex": "1" });
      const node = h("div", { class: "grid-row", role: "row" }, numberCell);
      view = { node, number: numberCell, cells: new Map(), index: -1, shown: undefined, state: "" };
    }
    view.index = index;
    view.node.style.transform = `translateY(${index * ROW}px)`;
    view.node.setAttribute("aria-rowindex", String(index + 2));
    this.#views.set(index, view);
    if (before) before.after(view.node);
    else this.body.prepend(view.node);
    return view;
  }

  /** @param {RowView} view @param {boolean} placed whether columns may have moved */
  #drawRow(view, placed) {
    const { from, to } = this.#drawn;
    const row = this.#options.rows.rowAt(view.index);
    view.shown = row;
    this.#drawState(view);
    if (placed) view.number.style.width = `${this.#numberWidth}px`;
    const free = /** @type {HTMLElement[]} */ ([]);
    for (const [column, node] of view.cells) {
      if (column >= from && column < to) continue;
      view.cells.delete(column);
      free.push(node);
    }
    let before = view.number;
    for (let column = from; column < to; column += 1) {
      let node = view.cells.get(column);
      if (!node || placed) {
        if (!node) {
          node = free.pop() ?? h("div", { role: "gridcell", dir: "auto" });
          before.after(node);
          view.cells.set(column, node);
        }
        node.style.left = `${this.#numberWidth + this.#columns.starts[column]}px`;
        node.style.width = `${this.#columns.width(column)}px`;
        node.setAttribute("aria-colindex", String(column + 2));
      }
      this.#fill(node, row?.[column], column, view.index);
      before = node;
    }
    for (const node of free) node.remove();
  }

  /** The number of a row, and what becomes of it by edits. @param {RowView} view */
  #drawState(view) {
    const { rows } = this.#options;
    const found = rows.numberOf ? rows.numberOf(view.index) : view.index + 1;
    const state = rows.stateOf?.(view.index) ?? "";
    view.state = state;
    view.number.textContent = found === null ? "new" : number(found);
    const kind = `grid-row${view.index % 2 ? " odd" : ""}${state ? ` r-${state}` : ""}`;
    if (view.node.className !== kind) view.node.className = kind;
    if (state) view.node.setAttribute("aria-description", STATES[state] ?? "");
    else view.node.removeAttribute("aria-description");
  }

  /** @param {HTMLElement} node @param {DataCell | undefined} value @param {number} column @param {number} row */
  #fill(node, value, column, row) {
    const about = this.#columns.all[column];
    const follows = value != null && (this.#options.followName?.(column) ?? "") !== "";
    const changed = this.#options.rows.isChanged?.(row, column) ?? false;
    const kind = cellClass(value, about) + (follows ? " follows" : "") + (changed ? " changed" : "");
    if (node.className !== kind) node.className = kind;
    fillCell(node, value);
    if (follows) node.append(h("span", { class: "follow", "aria-hidden": "true" }, icon("follow")));
  }

  /** @param {number} from @param {number} to */
  #drawHead(from, to) {
    const order = this.#options.sort?.() ?? [];
    for (const [column, node] of this.#heads) {
      if (column >= from && column < to) continue;
      node.remove();
      this.#heads.delete(column);
    }
    let before = /** @type {HTMLElement} */ (this.corner);
    for (let column = from; column < to; column += 1) {
      const about = this.#columns.all[column];
      const place = order.findIndex((key) => key.column === about.name);
      const key = `${about.name}\0${about.type}\0${about.masked}\0${place}\0${order[place]?.direction}\0${order.length}`;
      let node = this.#heads.get(column);
      if (node?.dataset.key !== key) {
        const fresh = this.#headCell(column, about, place, order);
        fresh.dataset.key = key;
        if (node) node.replaceWith(fresh);
        else before.after(fresh);
        node = fresh;
        this.#heads.set(column, node);
      }
      node.style.left = `${this.#numberWidth + this.#columns.starts[column]}px`;
      node.style.width = `${this.#columns.width(column)}px`;
      before = node;
    }
    this.#widen();
  }

  /** @param {number} column @param {DataColumn} about @param {number} place
   * @param {readonly { column: string, direction: "asc" | "desc" }[]} order */
  #headCell(column, about, place, order) {
    const direction = order[place]?.direction;
    const target = this.#options.followName?.(column) ?? "";
    const sorts = this.#sorts(column);
    return h("div", {
      class: `grid-name ${about.kind === "number" ? "k-number" : ""} ${sorts ? "sorts" : ""}`,
      role: "columnheader", "aria-colindex": String(column + 2), "data-column": String(column),
      "aria-sort": direction ? (direction === "asc" ? "ascending" : "descending") : null,
    },
      h("span", { class: "name" }, h("bdi", {}, visible(about.name)),
        direction ? h("span", { class: "order", "aria-hidden": "true" },
          `${direction === "asc" ? "▲" : "▼"}${order.length > 1 ? place + 1 : ""}`) : null),
      h("span", { class: "type" }, about.masked ? [icon("mask"), "masked, "] : null, h("bdi", {}, visible(about.type)),
        target ? h("span", { class: "sr" }, ", refers to ", visible(target)) : null),
      h("span", { class: "grid-resize", "aria-hidden": "true" }));
  }

  /** @param {number} column */
  #sorts(column) {
    return Boolean(this.#options.onSort) && (this.#options.canSort?.(column) ?? true);
  }

  // Where we are

  get #range() {
    const [one, other] = [this.#anchor, this.active.peek()];
    return {
      top: Math.min(one.row, other.row), bottom: Math.max(one.row, other.row),
      left: Math.min(one.column, other.column), right: Math.max(one.column, other.column),
    };
  }

  /** Show which cell is active and which are chosen. */
  #mark() {
    const { row, column } = this.active.peek();
    const { top, bottom, left, right } = this.#range;
    const several = top !== bottom || left !== right;
    let current = /** @type {HTMLElement | undefined} */ (undefined);
    for (const [index, view] of this.#views) {
      for (const [place, node] of view.cells) {
        const inside = several && index >= top && index <= bottom && place >= left && place <= right;
        const here = index === row && place === column;
        if (here) current = node;
        if (inside !== (node.getAttribute("aria-selected") === "true")) {
          if (inside) node.setAttribute("aria-selected", "true");
          else node.removeAttribute("aria-selected");
        }
        if (here !== node.classList.contains("active")) node.classList.toggle("active", here);
        if (here) node.id = `${this.#id}-cell`;
        else if (node.id) node.removeAttribute("id");
      }
    }
    for (const [place, node] of this.#heads) {
      const here = row === -1 && place === column;
      node.classList.toggle("active", here);
      if (here) {
        current = node;
        node.id = `${this.#id}-cell`;
      } else if (node.id) node.removeAttribute("id");
    }
    if (current) this.box.setAttribute("aria-activedescendant", `${this.#id}-cell`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  /** Where a cell is in the body, and how much of it is in sight.
   * @param {number} row @param {number} column */
  placeOf(row, column) {
    const { box } = this;
    const room = box.clientWidth - this.#numberWidth - 8;
    const left = this.#numberWidth + this.#columns.starts[column];
    const most = box.scrollLeft + box.clientWidth - Math.min(room, Math.max(this.#columns.width(column), EDITOR)) - 4;
    return { left: Math.max(box.scrollLeft + this.#numberWidth, Math.min(left, most)), top: row * ROW, width: this.#columns.width(column), room,
      bottom: box.scrollTop + box.clientHeight - HEAD };
  }

  /** @param {Spot} spot @param {boolean} extend whether the choice grows to it */
  go(spot, extend) {
    const last = this.#options.rows.count.peek() - 1;
    const row = Math.max(extend ? 0 : -1, Math.min(spot.row, last));
    const column = Math.max(0, Math.min(spot.column, this.#columns.all.length - 1));
    this.active.value = { row, column };
    if (!extend || this.#anchor.row < 0) this.#anchor = { row, column };
    this.#reveal(row, column);
    this.draw(false);
  }

  /** @param {number} row @param {number} column */
  #reveal(row, column) {
    const { box } = this;
    if (row >= 0) {
      const [top, room] = [row * ROW, box.clientHeight - HEAD];
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + ROW > box.scrollTop + room) box.scrollTop = top + ROW - room;
    }
    const [left, right] = [this.#columns.starts[column], this.#columns.starts[column + 1]];
    const room = box.clientWidth - this.#numberWidth;
    if (left < box.scrollLeft || right - left > room) box.scrollLeft = left;
    else if (right > box.scrollLeft + room) box.scrollLeft = right - room;
  }

  /** What can be done with the cell under the pointer, or the active one.
   * @param {MouseEvent | null} event @returns {import("./context_menu.js").Menu | null} */
  #menu(event) {
    const target = /** @type {Element | null} */ (event?.target ?? null);
    const head = /** @type {HTMLElement | null} */ (target?.closest(".grid-name") ?? null);
    if (head) this.go({ row: -1, column: Number(head.dataset.column) }, false);
    else if (event && target?.closest(".grid-row")) {
      const spot = this.#under(event);
      const { top, bottom, left, right } = this.#range;
      const chosen = spot.row >= top && spot.row <= bottom && spot.column >= left && spot.column <= right;
      if (!chosen) this.go(spot, false);
    } else if (event) return null;
    const { row, column } = this.active.peek();
    const about = this.#columns.all[column];
    if (!about || (row >= 0 && !this.#options.rows.rowAt(row))) return null;
    const sorts = this.#sorts(column);
    const follows = row >= 0 && (this.#options.followName?.(column) ?? "") !== "";
    return {
      label: row < 0 ? `Column ${about.name}` : `${about.name}, row ${row + 1}`,
      at: this.box.querySelector(`[id="${this.#id}-cell"]`),
      items: [
        ...(row >= 0 && this.#options.onOpenCell ? [{ label: "Open the value", keys: "Enter", run: () => this.#options.onOpenCell?.(row, column) }] : []),
        ...(follows ? [{ label: `Go to ${this.#options.followName?.(column)}`, keys: "Ctrl Enter", run: () => this.#options.onFollow?.(row, column) }] : []),
        { label: row < 0 ? "Copy the name" : "Copy", keys: "Ctrl C", run: () => void this.copy(null) },
        ...(this.#options.onSort ? [{ label: "Sort by this column", disabled: !sorts, run: () => this.#sort(column, false) },
          { label: "Sort by it as well", disabled: !sorts, run: () => this.#sort(column, true) }] : []),
        ...(this.#options.menu?.({ row, column }) ?? []),
        ...(this.editing?.menu({ row, column }, this.#range) ?? []),
      ],
    };
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    if (event.altKey || event.isComposing || event.target !== this.box) return;
    const control = event.ctrlKey || event.metaKey;
    const { row, column } = this.active.peek();
    if (!["Control", "Shift", "Meta"].includes(event.key)) this.#going.abort();
    if (this.editing?.press(event, { row, column }, this.#range)) {
      event.preventDefault();
      return;
    }
    if (this.#moves(event.key, control, event.shiftKey, row, column)) event.preventDefault();
    else if (event.key === "Enter" || (event.key === " " && row === -1)) {
      event.preventDefault();
      if (row === -1) this.#sort(column, event.shiftKey);
      else if (control) this.#options.onFollow?.(row, column);
      else if (this.#options.rows.count.peek()) this.#options.onOpenCell?.(row, column);
    } else if (event.key === "Escape") this.go({ row, column }, false);
    else if (control && event.key.toLowerCase() === "a") {
      event.preventDefault();
      this.#anchor = { row: 0, column: 0 };
      this.active.value = { row: this.#options.rows.count.peek() - 1, column: this.#columns.all.length - 1 };
      this.#mark();
    }
  }

  /** @param {string} key @param {boolean} control @param {boolean} shift @param {number} row @param {number} column */
  #moves(key, control, shift, row, column) {
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (row === -1 && shift && sideways) {
      this.#resize(column, this.#columns.width(column) + sideways * STEP);
      return true;
    }
    const [lastRow, lastColumn] = [this.#options.rows.count.peek() - 1, this.#columns.all.length - 1];
    const page = Math.max(1, Math.floor((this.box.clientHeight - HEAD) / ROW) - 1);
    const to = /** @type {Record<string, Spot>} */ ({
      ArrowUp: { row: control ? 0 : row - 1, column },
      ArrowDown: { row: control ? lastRow : row + 1, column },
      ArrowLeft: { row, column: control ? 0 : column - 1 },
      ArrowRight: { row, column: control ? lastColumn : column + 1 },
      PageUp: { row: Math.max(0, row - page), column },
      PageDown: { row: row + page, column },
      Home: { row: control ? 0 : row, column: 0 },
      End: { row: control ? lastRow : row, column: lastColumn },
    })[key];
    if (!to) return false;
    if (to.row === lastRow && control && !this.#options.isCounted?.() && this.#options.toEnd) void this.#goToEnd(to.column, shift);
    else this.go(to, shift);
    return true;
  }

  /** Load what is missing, and go there; another key ends it. @param {number} column @param {boolean} extend */
  async #goToEnd(column, extend) {
    const { signal } = (this.#going = new AbortController());
    const count = await this.#options.toEnd?.(signal) ?? 0;
    if (!signal.aborted && count) this.go({ row: count - 1, column }, extend);
  }

  /** @param {number} column @param {boolean} add */
  #sort(column, add) {
    if (this.#sorts(column)) this.#options.onSort?.(column, add);
    else if (this.#columns.all[column]?.masked) tell("A masked column cannot be sorted.");
  }

  /** @param {number} column @param {number} width */
  #resize(column, width) {
    this.#columns.resize(column, width);
    this.draw(false);
    say(`${this.#columns.all[column].name}: ${this.#columns.width(column)} pixels wide`);
  }

  /** The cell under the pointer. @param {MouseEvent} event @returns {Spot} */
  #under(event) {
    const { left, top } = this.box.getBoundingClientRect();
    return {
      row: Math.floor((event.clientY - top - HEAD + this.box.scrollTop) / ROW),
      column: this.#columns.at(event.clientX - left - this.#numberWidth + this.box.scrollLeft),
    };
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    this.#going.abort();
    if (event.button !== 0) return;
    const head = /** @type {HTMLElement | null} */ (target.closest(".grid-name"));
    if (head && target.closest(".grid-resize")) this.#drag(event, Number(head.dataset.column));
    else if (event.pointerType === "mouse" && target.closest(".grid-row")) this.#choose(event, target);
  }

  /** @param {PointerEvent} event @param {HTMLElement} target */
  #choose(event, target) {
    const spot = this.#under(event);
    const link = target.closest(".follow");
    if (link) {
      // There is no click if its row is drawn again meanwhile.
      this.#track(event, () => {}, (last) => {
        const { row, column } = this.#under(last);
        if (!link.isConnected && row === spot.row && column === spot.column) this.#options.onFollow?.(row, column);
      });
      return;
    }
    if (target.closest(".grid-number")) {
      this.#anchor = event.shiftKey ? { row: this.#anchor.row, column: 0 } : { row: spot.row, column: 0 };
      this.active.value = { row: spot.row, column: this.#columns.all.length - 1 };
      this.#mark();
      return;
    }
    this.go(spot, event.shiftKey);
    this.#track(event, (moved) => this.go(this.#under(moved), true));
  }

  /** Follow the pointer until it is let go. @param {PointerEvent} event @param {(event: PointerEvent) => void} work
   * @param {(event: PointerEvent) => void} [end] */
  #track(event, work, end) {
    const ended = new AbortController();
    const { signal } = ended;
    const [x, y] = [event.clientX, event.clientY];
    document.addEventListener("pointermove", (moved) => {
      if (Math.hypot(moved.clientX - x, moved.clientY - y) > 3) work(moved);
    }, { signal });
    document.addEventListener("pointercancel", () => ended.abort(), { signal });
    document.addEventListener("pointerup", (last) => {
      ended.abort();
      end?.(last);
    }, { signal });
  }

  /** @param {PointerEvent} event @param {number} column */
  #drag(event, column) {
    event.preventDefault();
    const [from, width] = [event.clientX, this.#columns.width(column)];
    this.#track(event, (moved) => {
      this.#columns.resize(column, width + moved.clientX - from);
      this.draw(false);
    });
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const head = /** @type {HTMLElement | null} */ (target.closest(".grid-name"));
    if (head && !target.closest(".grid-resize")) {
      const column = Number(head.dataset.column);
      this.go({ row: -1, column }, false);
      this.#sort(column, event.shiftKey);
    } else if (target.closest(".grid-cell")) {
      const [spot, { row, column }] = [this.#under(event), this.active.peek()];
      if (target.closest(".follow")) this.#options.onFollow?.(spot.row, spot.column);
      else if (/** @type {PointerEvent} */ (event).pointerType === "touch") {
        if (spot.row === row && spot.column === column) this.#options.onOpenCell?.(row, column);
        else this.go(spot, false);
      }
    }
  }

  /** @param {MouseEvent} event */
  #double(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const head = /** @type {HTMLElement | null} */ (target.closest(".grid-name"));
    if (head && target.closest(".grid-resize")) {
      const column = Number(head.dataset.column);
      this.#columns.fit(column, [...this.#views.values()].map(({ shown }) => shown));
      this.draw(false);
    } else if (target.closest(".grid-cell")) {
      const { row, column } = this.#under(event);
      if (!this.editing?.begin({ row, column })) this.#options.onOpenCell?.(row, column);
    }
  }

  /** Copy what is chosen. @param {ClipboardEvent | null} event */
  copy(event) {
    const { rows } = this.#options;
    const { top, bottom, left, right } = this.#range;
    const head = top < 0;
    const [first, last] = [Math.max(0, top), Math.max(0, bottom) + 1];
    event?.preventDefault();
    const done = () => tell(head ? "Copied the name" : `Copied ${counted(last - first, "row")}`);
    if (head) return this.#put(event, this.#columns.all[left].name).then(done, () => {});
    if ((last - first) * (right - left + 1) > MOST_COPIED) {
      tell("These are too many cells to copy. Use Export.");
      return Promise.resolve();
    }
    const loaded = [...Array(last - first).keys()].map((index) => rows.rowAt(first + index));
    /** @param {DataCell[][]} found */
    const text = (found) => {
      const made = tabSeparated(found.map((row) => row.slice(left, right + 1)));
      this.editing?.copied({ top: first, bottom: last - 1, left, right }, made);
      return made;
    };
    if (loaded.every((row) => row !== undefined)) return this.#put(event, text(loaded)).then(done, () => {});
    return rows.take(first, last).then((found) => this.#put(null, text(found))).then(done, () => tell("It was not copied."));
  }

  /** @param {ClipboardEvent | null} event @param {string} text */
  async #put(event, text) {
    if (event?.clipboardData) event.clipboardData.setData("text/plain", text);
    else await navigator.clipboard.writeText(text);
  }
}
