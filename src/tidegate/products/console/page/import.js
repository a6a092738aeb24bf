/** An import of a file: how it is read, where its rows go, what is wrong in it, and how far it is. */

import { errorText, get, post, query } from "./api.js";
import { data } from "./data_state.js";
import { h, keyed, loadStyle } from "./dom.js";
import { icon } from "./icons.js";
import { readingFields } from "./import_reading.js";
import { ImportTarget, targetFields } from "./import_target.js";
import { upload } from "./import_upload.js";
import { questionView } from "./question_view.js";
import { batch, computed, onEnd, root, signal } from "./signals.js";
import { listen, passOn, say, tell } from "./state.js";
import { counted, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./import_contract.js").FileImport} FileImport */
/** @typedef {import("./import_contract.js").ImportRun} ImportRun */
/** @typedef {import("./import_contract.js").Reading} Reading */

const POLL_MS = 400;
const BUSY = new Set(["checking", "running", "asking"]);

/** @param {Place} place @param {string} table where the rows may go @param {File | null} [file] */
export function importFile(place, table, file = null) {
  void loadStyle("import.css");
  const [work, stop] = root(() => new ImportDialog(place, table));
  work.show(() => stop());
  if (file) void work.take(file);
}

class ImportDialog {
  file = signal(/** @type {FileImport | null} */ (null));
  run = signal(/** @type {ImportRun | null} */ (null));
  #problem = signal("");
  #sent = signal(-1);
  #ended = new AbortController();
  // How the file is to be read, until it is shown so.
  #wanted = signal(/** @type {Reading | null} */ (null));
  #isBusy = computed(() => BUSY.has(this.run.value?.state ?? "") || this.#sent.value >= 0 || this.#wanted.value !== null);
  #leave = () => {};
  #dialog;

  /** @param {Place} place @param {string} table */
  constructor(place, table) {
    this.target = new ImportTarget(place, table, (error) => (this.#problem.value = errorText(error)), () => (this.run.value = null));
    const input = h("input", { type: "file", id: "import-file", accept: ".csv,.tsv,.tab,.txt,.xlsx,.xlsm,.xls,.xlsb,.ods,.parquet",
      onchange: () => input.files?.[0] && void this.take(input.files[0]) });
    this.#dialog = h("dialog", {
      class: "import", "aria-labelledby": "import-title",
      oncancel: (/** @type {Event} */ event) => (event.preventDefault(), this.close()),
      ondragover: (/** @type {DragEvent} */ event) => event.preventDefault(),
      ondrop: (/** @type {DragEvent} */ event) => {
        event.preventDefault();
        const dropped = event.dataTransfer?.files[0];
        if (dropped && !this.#isBusy.peek()) void this.take(dropped);
      },
    }, h("div", { class: "import-all" },
      h("h2", { id: "import-title" }, "Import a file"),
      h("div", { class: "import-body" },
        h("label", { for: "import-file" }, "CSV, TSV, Excel or Parquet; or drop it here"), input,
        () => (this.#sent.value >= 0 ? h("p", { class: "note", role: "status" }, `Sending: ${number(this.#sent.value)} % …`) : null),
        () => (this.#problem.value ? h("p", { class: "error", role: "alert" }, prose(this.#problem.value)) : null),
        keyed(() => this.file.value && JSON.stringify([this.file.value.digest, this.file.value.phase, this.file.value.reading]), () => this.#found()),
        () => this.#said(),
        keyed(() => (this.run.value?.state === "asking" ? this.run.value.approval : null), () => {
          const question = this.run.peek();
          return question?.state === "asking" && question.approval ? questionView(question.approval) : null;
        })),
      h("div", { class: "dialog-actions" }, () => this.#actions())));
    onEnd(listen("import", ({ id, run }) => id === this.file.peek()?.id && this.#follow(run)));
  }

  /** @param {() => void} onEnd */
  show(onEnd) {
    this.#leave = onEnd;
    document.body.append(this.#dialog);
    this.#dialog.showModal();
    this.#dialog.querySelector("input")?.focus();
  }

  close() {
    const file = this.file.peek();
    const { state } = this.run.peek() ?? {};
    if (file && state !== "running" && state !== "asking") void post(`data/imports/${file.id}/close`, {}).catch(() => {});
    else if (file) {
      tell("The import goes on: how it ends is shown here.");
      const stop = listen("import", ({ id, run }) => {
        if (id !== file.id || BUSY.has(run.state)) return;
        stop();
        tell(outcome(run));
        passOnRows(run);
      });
    }
    this.#ended.abort();
    this.#dialog.close();
    this.#dialog.remove();
    this.#leave();
  }

  /** @param {File} file */
  async take(file) {
    const old = this.file.peek();
    if (old) void post(`data/imports/${old.id}/close`, {}).catch(() => {});
    batch(() => {
      this.file.value = this.run.value = this.#wanted.value = null;
      this.#problem.value = "";
      this.#sent.value = 0;
    });
    try {
      const found = await upload(file, (share) => (this.#sent.value = share), this.#ended.signal);
      this.#show(found);
    } catch (error) {
      if (!this.#ended.signal.aborted) this.#problem.value = errorText(error);
    } finally {
      this.#sent.value = -1;
    }
  }

  /** @param {FileImport} found */
  #show(found) {
    batch(() => {
      this.run.value = null;
      this.#problem.value = found.phase === "unreadable" ? found.message : "";
      this.file.value = found;
    });
    if (found.phase === "ready") void this.target.takeColumns(found);
  }

  /** Read the file as it is wanted now. What is chosen while it is read is not lost: then it is read
   * once more. @param {Partial<Reading>} changes */
  async #read(changes) {
    const file = this.file.peek();
    if (!file) return;
    const isRead = this.#wanted.peek() !== null;
    this.#wanted.value = { ...(this.#wanted.peek() ?? file.reading), ...changes };
    if (isRead) return;
    try {
      let found, sent;
      do {
        sent = this.#wanted.peek();
        found = /** @type {FileImport} */ (await post(`data/imports/${file.id}/read`, { ...sent }, this.#ended.signal));
        if (file !== this.file.peek()) return;
      } while (sent !== this.#wanted.peek());
      const label = document.activeElement?.getAttribute("aria-label") ?? "";
      this.#wanted.value = null;
      this.#show(found);
      // The field that has the focus is another node now.
      /** @type {HTMLElement | null} */ (this.#dialog.querySelector(`.import-reading [aria-label="${label}"]`))?.focus();
    } catch (error) {
      if (file !== this.file.peek()) return;
      this.#wanted.value = null;
      if (!this.#ended.signal.aborted) this.#problem.value = errorText(error);
    }
  }

  #found() {
    const file = this.file.peek();
    if (!file) return null;
    return [
      readingFields(file, (changes) => void this.#read(changes)),
      file.phase === "ready" ? targetFields(this.target, file) : null,
    ];
  }

  // Checking and adding

  /** @param {ImportRun} next */
  #follow(next) {
    const old = this.run.peek();
    if (!old || (!BUSY.has(old.state) && BUSY.has(next.state))) return;
    this.run.value = next;
    if (old.state === next.state || BUSY.has(next.state)) return;
    if (next.state === "done") say(outcome(next));
    passOnRows(next);
  }

  /** @param {"check" | "submit" | "cancel"} what @param {object} body */
  async #ask(what, body) {
    const file = this.file.peek();
    if (!file) return;
    this.#problem.value = "";
    try {
      const answer = /** @type {FileImport} */ (await post(`data/imports/${file.id}/${what}`, body, this.#ended.signal));
      this.run.value = answer.run;
      while (BUSY.has(this.run.peek()?.state ?? "") && !this.#ended.signal.aborted) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        const now = /** @type {FileImport} */ (await get(`data/imports/${file.id}`, this.#ended.signal));
        if (now.run) this.#follow(now.run);
      }
    } catch (error) {
      if (!this.#ended.signal.aborted) this.#problem.value = errorText(error);
    }
    if (!this.#dialog.contains(document.activeElement)) /** @type {HTMLElement | null} */ (this.#dialog.querySelector(".dialog-actions .primary"))?.focus();
  }

  #said() {
    const run = this.run.value;
    if (!run) return null;
    const table = isolated(run.table ?? "");
    if (run.state === "checking") return h("p", { class: "note", role: "status" }, `${counted(run.done, "row")} checked …`);
    if (run.state === "running" || run.state === "asking") {
      return h("div", { role: "status" },
        h("progress", { max: String(run.count), value: run.done, "aria-label": "Rows that are added" }),
        h("p", {}, run.state === "asking" ? "A person is asked before they are added." : `${number(run.done)} of ${counted(run.count, "row")} …`));
    }
    if (run.state === "checked") {
      return h("div", { class: "import-ready", role: "status" },
        h("p", { class: "good" }, icon("check"), ` ${counted(run.count, "row")} can be added to `, table, "."),
        run.asks ? h("p", { class: "doubt" }, "A person is asked before they are.") : null,
        run.cannot_undo ? h("p", { class: "doubt" }, icon("warning"), " This cannot be taken back: ", visible(run.cannot_undo)) : null,
        h("p", { class: "note" }, "Digest of all values: ", h("code", {}, run.digest)));
    }
    if (run.state === "invalid") return errorsView(run);
    if (run.state === "done") {
      return h("div", { class: "import-ready", role: "status" },
        h("p", { class: "good" }, icon("check"), ` ${counted(run.count, "row")} added to `, table, "."),
        run.notes.map((each) => h("p", { class: "note" }, visible(each))));
    }
    return h("div", { class: "error", role: "alert" }, h("p", {}, prose(run.message)),
      run.hint ? h("p", { class: "error-hint" }, prose(run.hint)) : null,
      h("p", {}, run.state === "unknown" ? "It is unknown whether the rows were added." : "Nothing was added."));
  }

  #actions() {
    const run = this.run.value;
    const state = run?.state ?? "";
    const ready = this.file.value?.phase === "ready";
    const done = state === "done";
    return [
      BUSY.has(state) ? h("button", { onclick: () => void this.#ask("cancel", {}) }, "Cancel") : null,
      h("button", { class: "quiet", onclick: () => this.close() }, "Close"),
      done ? h("button", { class: "primary", onclick: () => {
        const { place, table } = this.target;
        this.close();
        void data.openTable(place.peek(), table.peek());
      } }, "Open the table") : null,
      ready && !done ? h("button", { class: state === "checked" ? "" : "primary", disabled: () => this.#isBusy.value || !this.target.isReady.value,
        onclick: () => void this.#ask("check", this.target.body) }, "Check") : null,
      ready && !done && (state === "checked" || state === "failed" || state === "cancelled") ? h("button", { class: "primary", disabled: () => this.#isBusy.value,
        onclick: () => void this.#ask("submit", {}) }, `Import ${counted(run?.count ?? 0, "row")}`) : null,
    ];
  }
}

/** What shows the table reads it again. @param {ImportRun} run */
function passOnRows({ state, source, schema, table }) {
  if (state !== "done") return;
  passOn({ seq: 0, name: "names", data: {} });
  passOn({ seq: 0, name: "table", data: { source, schema, table } });
}

/** How it ended, in a sentence. @param {ImportRun} run */
const outcome = ({ state, count, table, message }) => (state === "done" ? `${counted(count, "row")} added to ${table}.`
  : `${message || "The import ended."} ${state === "unknown" ? "It is unknown whether the rows were added." : "Nothing was added."}`);

/** @param {ImportRun} run */
function errorsView(run) {
  return h("div", { role: "alert" },
    h("p", { class: "error" }, run.message ? prose(run.message) : `${counted(run.error_count, "fault")} in ${counted(run.count, "row")}. Nothing is added until there are none.`),
    run.errors.length ? h("div", { class: "import-errors", tabindex: "0", role: "region", "aria-label": "Faults by line" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Line", "Column", "What is wrong"].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, run.errors.map(({ line, column, message }) => h("tr", {}, h("td", {}, number(line)), h("td", {}, isolated(column)), h("td", {}, visible(message))))))) : null,
    run.error_count > run.errors.length ? h("p", { class: "note" }, `The first ${number(run.errors.length)} are shown.`) : null);
}
