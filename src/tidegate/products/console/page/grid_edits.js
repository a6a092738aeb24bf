/** Editing in a grid: cells by typing, blocks by pasting and filling, rows new, doubled and deleted. */

import { cellEditor } from "./cell_editor.js";
import { cellOfShown, isAsShown, readTabSeparated, takesValues, typedCell, whyInvalid } from "./edit_cells.js";
import { pickKey } from "./key_picker.js";
import { perSession, say, tell } from "./state.js";
import { counted } from "./text.js";

/** @typedef {import("./edit_contract.js").Cell} Cell */
/** @typedef {import("./edit_contract.js").Cells} Cells */
/** @typedef {import("./edit_contract.js").EditColumn} EditColumn */
/** @typedef {import("./grid.js").Spot} Spot */
/** @typedef {import("./grid.js").Range} Range */
/** @typedef {import("./staged_edits.js").StagedEdits} StagedEdits */
/** @typedef {import("./staged_edits.js").Target} Target */

/** What was copied last: its text, and what gives its values as they are stored. */
const copied = perSession(() => ({ text: "", take: /** @type {(() => Promise<(Cell | undefined)[][]>) | null} */ (null) }));

export class GridEdits {
  #grid;
  #rows;
  #edits;
  #source;
  /** Show a row as a form. @type {(row: number) => void} */
  #showForm;
  /** @type {ReturnType<typeof cellEditor> | null} */
  #editor = null;

  /** @param {{ grid: ReturnType<typeof import("./grid.js").grid>, rows: import("./edited_rows.js").EditedRows,
   *   edits: StagedEdits, source: string, showForm: (row: number) => void }} parts */
  constructor({ grid, rows, edits, source, showForm }) {
    this.#grid = grid;
    this.#rows = rows;
    this.#edits = edits;
    this.#source = source;
    this.#showForm = showForm;
  }

  /** Why nothing can be edited, or "". */
  get #refusal() {
    const about = this.#edits.about.peek();
    if (!about) return "It is not known yet what can be edited.";
    const { submission } = this.#edits;
    if (submission.peek()?.ended_at === null) return "The changes are being written.";
    return about.editable ? "" : about.reason || "This cannot be edited.";
  }

  /** The column of the table at a place, if it takes values. @param {number} column
   * @param {boolean} [isNew] in a new row @returns {EditColumn | null} */
  #columnAt(column, isNew = false) {
    const found = this.#edits.column(this.#edits.columns[column] ?? "");
    return found && takesValues(found, isNew) ? found : null;
  }

  /** A row that may be edited, or why it may not. @param {number} row @returns {Target | string} */
  #targetAt(row) {
    const state = this.#rows.stateOf(row);
    if (state === "delete") return "The row is to be deleted.";
    if (state === "gone") return "The row is not there any more.";
    return this.#rows.target(row) ?? "No key names this row: it is NULL, or was not read. Read the rows again.";
  }

  /** The value of a cell as far as it is known here. @param {number} row @param {number} column
   * @returns {Cell | undefined} */
  #cellAt(row, column) {
    const target = this.#rows.target(row);
    const staged = target && this.#edits.of(target);
    const name = this.#edits.columns[column];
    if (staged && name in staged.cells) return staged.cells[name];
    return cellOfShown(this.#rows.rowAt(row)?.[column]);
  }

  // One cell

  /** Edit a cell; false where it cannot be. @param {Spot} spot @param {string | null} typed in place of it */
  begin({ row, column }, typed = null) {
    if (this.#editor && !this.#editor.finish()) return true;
    const about = this.#edits.column(this.#edits.columns[column] ?? "");
    const target = this.#refusal || row < 0 ? null : this.#targetAt(row);
    const why = (target === null || typeof target === "string" ? this.#refusal : this.#refusalOf("id" in target ? "insert" : "update")) || (!about ? "This column is none of the table's." : takesValues(about, Boolean(target && typeof target === "object" && "id" in target)) ? "" : about.reason || "This column takes no values.") ||
      (typeof target === "string" ? target : "");
    if (why || !about || !target || typeof target === "string") {
      if (why) tell(why);
      return false;
    }
    const { name } = about;
    const staged = this.#edits.of(target);
    const isKnown = "id" in target || (staged && name in staged.cells);
    this.#editor = cellEditor({
      host: this.#grid.body, place: this.#grid.placeOf(row, column), column: about, typed,
      label: `${name}, ${"id" in target ? "new row" : `row ${this.#rows.numberOf(row) ?? ""}`}`,
      cell: this.#cellAt(row, column),
      exact: isKnown || typed !== null ? Promise.resolve(this.#cellAt(row, column))
        : this.#edits.open(target).then((before) => before?.[name], () => undefined),
      commit: (cell) => void this.#edits.write([{ target, cells: { [name]: cell } }]),
      leave: (onward) => {
        this.#editor = null;
        if (onward) this.#grid.go({ row: onward === 1 ? row + 1 : row, column: column + ({ 1: 0, 2: 1, 3: -1 }[onward] ?? 0) });
        this.#grid.focus();
      },
      pick: about.references ? () => void this.#pick(target, about) : null,
    });
    return true;
  }

  /** Put a key into the editor that is open: it came while that was loaded.
   * @param {KeyboardEvent} event @returns {boolean} */
  type(event) {
    const open = this.#editor;
    open?.type(event);
    return open !== null;
  }

  /** Choose the row that a key refers to. @param {Target} target @param {EditColumn} column */
  async #pick(target, column) {
    const { references } = column;
    if (!references) return;
    const values = await pickKey(this.#source, references);
    if (values) this.#edits.write([{ target, cells: Object.fromEntries(references.from.map((name, at) => [name, { text: values[at] }])) }]);
    this.#grid.focus();
  }

  /** Take what is being typed before all is submitted. */
  finish() {
    return this.#editor?.finish() ?? true;
  }

  // Keys and menus

  /** @param {KeyboardEvent} event @param {Spot} spot @param {Range} range @returns {boolean} whether it is taken */
  press(event, spot, range) {
    const control = event.ctrlKey || event.metaKey;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (control && (key === "z" || key === "y")) {
      if (key === "y" || event.shiftKey) this.#edits.redo();
      else this.#edits.undo();
    } else if (key === "F2") {
      if (event.shiftKey) this.#showForm(spot.row);
      else this.begin(spot);
    } else if (spot.row < 0) return false;
    else if (key === "Insert" && !control) this.insert();
    else if (control && key === "d") void (event.shiftKey ? this.duplicate(range) : this.fill(range));
    else if (control && key === "Delete") this.remove(range);
    else if (key === "Delete") this.setAll(range, null);
    else if (event.key.length === 1 && event.key !== " " && !control && !this.#edits.isQuery) return this.begin(spot, event.key);
    else return false;
    return true;
  }

  /** @param {Spot} spot @param {Range} range @returns {import("./context_menu.js").MenuItem[]} */
  menu(spot, range) {
    if (this.#refusal) return [];
    const target = this.#rows.target(spot.row);
    const column = this.#columnAt(spot.column, target !== null && "id" in target);
    const rows = range.bottom - range.top + 1;
    const whole = counted(rows, "row");
    return [null,
      { label: "New row", keys: "Insert", disabled: this.#refusalOf("insert") !== "", run: () => this.insert() },
      ...(spot.row < 0 ? [] : [
        { label: "Edit the value", keys: "F2", disabled: !column, run: () => void this.begin(spot) },
        { label: "Edit the row as a form", keys: "Shift F2", run: () => this.#showForm(spot.row) },
        { label: "Set to NULL", keys: "Delete", disabled: !column?.nullable, run: () => this.setAll(range, null) },
        { label: "Set to the empty text", disabled: !column, run: () => this.setAll(range, { text: "" }) },
        { label: "Set to DEFAULT", disabled: !column?.has_default, run: () => this.setAll(range, { default: true }) },
        { label: "Fill down", keys: "Ctrl D", disabled: rows < 2, run: () => this.fill(range) },
        { label: `Double ${whole}`, keys: "Ctrl Shift D", disabled: this.#refusalOf("insert") !== "", run: () => void this.duplicate(range) },
        { label: this.#areDeleted(range) ? `Keep ${whole}` : `Delete ${whole}`, keys: "Ctrl Delete", disabled: this.#refusalOf("delete") !== "", run: () => this.remove(range) },
      ])];
  }

  // Blocks and rows

  /** Targets of the rows of a range, without those that cannot be edited. @param {Range} range */
  #targets({ top, bottom }) {
    const found = /** @type {{ row: number, target: Target }[]} */ ([]);
    for (let row = Math.max(0, top); row <= bottom; row += 1) {
      const target = this.#rows.target(row);
      if (target && this.#rows.stateOf(row) !== "gone") found.push({ row, target });
    }
    return found;
  }

  /** @param {Range} range */
  #areDeleted(range) {
    const found = this.#targets(range);
    return found.length > 0 && found.every(({ target }) => this.#edits.of(target)?.kind === "delete");
  }

  /** Why edits of a kind are refused, or "". @param {"insert" | "update" | "delete"} kind */
  #refusalOf(kind) {
    return this.#refusal || (this.#edits.about.peek()?.refused?.[kind] ?? "");
  }

  /** Whether edits of a kind are refused; that is said. @param {"insert" | "update" | "delete"} kind */
  #refuses(kind) {
    const why = this.#refusalOf(kind);
    if (why) tell(why);
    return why !== "";
  }

  /** A new row, above the others. */
  insert() {
    if (this.#refuses("insert")) return;
    this.#edits.write([], [{}]);
    const column = this.#edits.columns.findIndex((_, at) => this.#columnAt(at, true));
    this.#grid.go({ row: Math.max(0, this.#edits.inserts.peek().length - 1), column: Math.max(0, column) });
    this.#grid.focus();
    say("A new row.");
  }

  /** @param {Range} range */
  remove(range) {
    if (this.#refuses("delete")) return;
    const targets = this.#targets(range).map(({ target }) => target);
    const kept = this.#areDeleted(range);
    this.#edits.remove(targets);
    say(`${counted(targets.length, "row")} ${kept ? "stay" : "to be deleted"}.`);
  }

  /** @param {Range} range @param {Cell} cell */
  setAll(range, cell) {
    if (this.#refuses("update")) return;
    this.#put(range, () => cell);
  }

  /** Put what is in the first row of a range into those below. @param {Range} range */
  async fill(range) {
    if (this.#refuses("update")) return;
    if (range.top === range.bottom) {
      tell("Choose the row and those below it first.");
      return;
    }
    const [cells] = await this.#taker({ ...range, bottom: range.top })();
    this.#put({ ...range, top: range.top + 1 }, (_, column) => cells[column - range.left]);
  }

  /** The cells of a range as they are now. What a grid shows in another way than it is stored is read when
   * they are taken. @param {Range} range @returns {() => Promise<(Cell | undefined)[][]>} */
  #taker({ top, bottom, left, right }) {
    const edits = this.#edits;
    const names = edits.columns.slice(left, right + 1);
    const lines = Array.from({ length: bottom - Math.max(0, top) + 1 }, (_, at) => {
      const row = Math.max(0, top) + at;
      const target = this.#rows.target(row);
      const staged = target && edits.of(target)?.cells;
      const cells = names.map((name, column) => {
        const cell = this.#cellAt(row, left + column);
        const about = edits.column(name);
        const isRead = cell !== null && target && !("id" in target) && !(staged && name in staged) && about && !about.masked &&
          (cell === undefined || !isAsShown(about));
        return { name, cell, isRead };
      });
      return { target, cells };
    });
    const read = lines.filter(({ cells }) => cells.some(({ isRead }) => isRead));
    return async () => {
      const found = await edits.openAll(read.map(({ target }) => /** @type {Target} */ (target)));
      return lines.map((line) => {
        const before = found[read.indexOf(line)];
        return line.cells.map(({ name, cell, isRead }) => (isRead ? before?.[name] : cell));
      });
    };
  }

  /** Put values into the cells of a range, as one step.
   * @param {Range} range @param {(row: number, column: number) => Cell | undefined} read undefined: none */
  #put(range, read) {
    const lost = /** @type {string[]} */ ([]);
    const changes = /** @type {{ target: Target, cells: Cells }[]} */ ([]);
    for (let row = Math.max(0, range.top); row <= range.bottom; row += 1) {
      const target = this.#targetAt(row);
      if (typeof target === "string") lost.push(target);
      else changes.push({ target, cells: this.#cells(range, (column) => read(row, column), lost, "id" in target) });
    }
    this.#edits.write(changes.filter(({ cells }) => Object.keys(cells).length));
    this.#tell(changes.length, lost);
  }

  /** The cells of one row of a range. @param {Range} range @param {(column: number) => Cell | undefined} read
   * @param {string[]} lost why values were left out @param {boolean} isNew whether the row is */
  #cells({ left, right }, read, lost, isNew) {
    const cells = /** @type {Cells} */ ({});
    for (let column = left; column <= right; column += 1) {
      const about = this.#columnAt(column, isNew);
      const cell = about ? read(column) : undefined;
      if (!about) lost.push(`${this.#edits.columns[column] || "A column"} takes no values.`);
      else if (cell === undefined) lost.push(`The value of ${about.name} is not whole here.`);
      else if (whyInvalid(cell, about)) lost.push(whyInvalid(cell, about));
      else cells[about.name] = cell;
    }
    return cells;
  }

  /** @param {number} rows @param {string[]} lost */
  #tell(rows, lost) {
    if (!lost.length) say(`${counted(rows, "row")} changed; Ctrl Z takes it back.`);
    else this.#edits.problem.value = `${counted(lost.length, "value")} ${lost.length === 1 ? "was" : "were"} left out: ${lost[0]}`;
    if (lost.length) say(this.#edits.problem.peek());
  }

  /** New rows with the values of others. @param {Range} range */
  async duplicate(range) {
    if (this.#refuses("insert")) return;
    const made = /** @type {Cells[]} */ ([]);
    for (const { target } of this.#targets(range)) {
      const staged = this.#edits.of(target);
      const all = { ...(await this.#edits.open(target)), ...(staged?.kind === "delete" ? {} : staged?.cells) };
      made.push(Object.fromEntries(Object.entries(all).filter(([name]) => {
        const about = this.#edits.column(name);
        // A key that the database gives is a new one.
        return about && takesValues(about, true) && !(about.key !== null && about.has_default);
      })));
    }
    if (!made.length) return;
    this.#edits.write([], made);
    this.#grid.go({ row: this.#edits.inserts.peek().length - made.length, column: range.left });
    say(`${counted(made.length, "new row")}.`);
  }

  /** Remember what was copied. @param {Range} range @param {string} text */
  noteCopy(range, text) {
    Object.assign(copied(), { text, take: this.#taker(range) });
  }

  /** Paste a block at the first cell of a range; one value, or a block that fits several times, fills it.
   * Rows past the last, and after new ones, become new rows. @param {string} text @param {Range} range */
  async paste(text, range) {
    const { take } = copied();
    const isOwn = take !== null && copied().text === text;
    if (this.#refuses("update") || !(isOwn || text)) return;
    const own = isOwn ? await take() : null;
    const block = own ?? readTabSeparated(text);
    const [high, broad] = [block.length, Math.max(...block.map((line) => line.length))];
    const [rows, columns] = [range.bottom - range.top + 1, range.right - range.left + 1];
    const [down, across] = [rows % high ? high : Math.max(rows, high), columns % broad ? broad : Math.max(columns, broad)];
    const top = Math.max(0, range.top);
    const whole = { top, bottom: top + down - 1, left: range.left, right: Math.min(range.left + across, this.#edits.columns.length) - 1 };
    /** @param {number} row @param {number} column @returns {Cell | undefined} */
    const read = (row, column) => {
      const found = block[(row - top) % high][(column - range.left) % broad];
      const about = this.#edits.column(this.#edits.columns[column] ?? "");
      return own ? /** @type {Cell | undefined} */ (found) : about && found !== undefined ? typedCell(/** @type {string} */ (found), about) : undefined;
    };
    const lost = /** @type {string[]} */ ([]);
    const changes = /** @type {{ target: Target, cells: Cells }[]} */ ([]);
    const added = /** @type {Cells[]} */ ([]);
    const fresh = this.#edits.inserts.peek().length;
    for (let row = top; row <= whole.bottom; row += 1) {
      const isNew = top < fresh ? row >= fresh : row >= this.#rows.count.peek();
      const target = isNew ? null : this.#targetAt(row);
      const cells = this.#cells(whole, (column) => read(row, column), lost, isNew || (typeof target === "object" && target !== null && "id" in target));
      if (typeof target === "string") lost.push(target);
      else if (target) changes.push({ target, cells });
      else added.push(cells);
    }
    if (added.length > (this.#edits.about.peek()?.most_rows ?? 0)) {
      this.#tell(0, [`A change takes ${counted(this.#edits.about.peek()?.most_rows ?? 0, "row")} at most.`]);
      return;
    }
    this.#edits.write(changes.filter(({ cells }) => Object.keys(cells).length), added);
    this.#tell(changes.length + added.length, lost);
  }
}
