/** The line under a grid that is edited: what waits, what may be done with it, how it is written. */

import { problems, putBack } from "./answer.js";
import { errorText } from "./api.js";
import { conflictsView } from "./edit_conflicts.js";
import { ask } from "./dialogs.js";
import { h, keyed } from "./dom.js";
import { icon } from "./icons.js";
import { questionView } from "./question_view.js";
import { signal } from "./signals.js";
import { plainStatement, statementView } from "./statement.js";
import { counted, number, prose, visible } from "./text.js";

/** @typedef {import("./edit_contract.js").Counts} Counts */
/** @typedef {import("./edit_contract.js").Submission} Submission */
/** @typedef {import("./staged_edits.js").StagedEdits} StagedEdits */

/** @param {Counts} counts */
const countsText = (counts) => [
  counts.insert ? `${number(counts.insert)} new` : "", counts.update ? `${number(counts.update)} changed` : "",
  counts.delete ? `${number(counts.delete)} deleted` : "",
].filter(Boolean).join(", ");

/** @param {StagedEdits} edits @param {{ insert: () => void, finish: () => boolean, refresh: () => void }} actions */
export function editBar(edits, actions) {
  const sql = signal(/** @type {import("./dom.js").Child} */ (null));
  const isBusy = () => edits.submission.value?.ended_at === null;
  const submit = async () => {
    if (!actions.finish() || !edits.rows.peek().size || edits.submission.peek()?.ended_at === null) return;
    const reason = edits.about.peek()?.asks ? await askReason() : "";
    if (reason !== null) await edits.submit(reason);
  };
  const showSql = async () => {
    if (sql.peek()) {
      sql.value = null;
      return;
    }
    sql.value = h("p", { class: "note" }, "Asking …");
    try {
      sql.value = sqlView(await edits.sql());
    } catch (error) {
      sql.value = h("p", { class: "error", role: "alert" }, prose(errorText(error)));
    }
  };
  const discard = async () => {
    const rows = edits.rows.peek().size;
    const yes = rows === 1 || await ask({ title: "Discard the changes?", action: "Discard", kind: "danger", read: () => true,
      body: h("p", {}, `${counted(rows, "row")} that were not written. Ctrl Z brings them back as long as the page is open.`) });
    if (yes) edits.discard();
  };
  const node = h("section", { class: "edit-part", "aria-label": "Changes" },
    () => (edits.problem.value ? h("p", { class: "error", role: "alert" }, prose(edits.problem.value), " ",
      h("button", { class: "small", onclick: () => (edits.problem.value = "") }, "Dismiss")) : null),
    keyed(() => `${edits.submission.value?.id} ${edits.submission.value?.state} ${edits.submission.value?.approval}`,
      () => submissionView(edits, actions.refresh)),
    () => (sql.value ? h("div", { class: "edit-sql" }, sql.value) : null),
    h("div", { class: "edit-bar" }, () => {
      const about = edits.about.value;
      if (!about) return null;
      const { count } = edits;
      const over = count > (about.most_rows ?? count);
      return [
        about.editable ? h("button", { class: "small", title: about.refused?.insert || "Insert", disabled: isBusy(), onclick: actions.insert }, icon("add"), "Row")
          : h("span", { class: "read-only" }, icon("mask"), h("span", {}, "Read-only: ", prose(about.reason))),
        Object.entries(about.refused ?? {}).map(([kind, why]) => h("span", { class: "read-only" },
          { insert: "No new rows: ", update: "No changed values: ", delete: "No deleted rows: " }[kind] ?? "", prose(why))),
        count || !about.editable ? null : h("span", { class: "note wide-only" }, edits.isQuery ? "F2 or a double click edits a value." : "F2, a double click or typing edits a value."),
        count ? h("strong", { class: "edit-count", role: "status" }, countsText(edits.counts.value)) : null,
        count ? h("button", { class: "small", "aria-pressed": String(Boolean(sql.value)), onclick: () => void showSql() }, "Show the SQL") : null,
        edits.undoable.value || count ? h("button", { class: "small", title: "Ctrl Z", disabled: isBusy(), onclick: () => edits.undo() }, icon("undo"), "Undo") : null,
        edits.redoable.value ? h("button", { class: "small", title: "Ctrl Shift Z", disabled: isBusy(), onclick: () => edits.redo() }, "Redo") : null,
        count ? h("button", { class: "small", disabled: isBusy(), onclick: () => void discard() }, "Discard") : null,
        over ? h("span", { class: "bad" }, `A change takes ${counted(about.most_rows, "row")} at most.`) : null,
        count ? h("button", { class: "small primary", title: "Ctrl S", disabled: isBusy() || over, onclick: () => void submit() },
          about.asks ? "Submit …" : "Submit") : null,
        edits.saving.value ? h("span", { class: "note" }, "Keeping …") : null,
      ];
    }));
  return { node, submit };
}

/** @returns {Promise<string | null>} */
function askReason() {
  const input = h("textarea", { id: "edit-reason", maxlength: "500", rows: "3" });
  return ask({ title: "Submit the changes", action: "Submit", read: () => input.value.trim(), body: [
    h("p", {}, "A person is asked before they are written, all of them as one change."),
    h("label", { for: "edit-reason" }, "A word to the one who answers (may be empty)"), input,
  ] });
}

/** @param {Awaited<ReturnType<StagedEdits["sql"]>>} found */
function sqlView({ text, spans, statements, shown, verdict, why }) {
  return [
    h("p", { class: "note" }, shown < statements ? `The first ${number(shown)} of ${counted(statements, "statement")}, one transaction; ` : `${counted(statements, "statement")}, one transaction; `,
      h("span", { class: `verdict v-${verdict.replace(/[^a-z]/g, "")}` }, { allow: "allowed", ask: "asks a person", deny: "refused" }[verdict] ?? visible(verdict)),
      why ? [": ", prose(why)] : null),
    h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "The statements" }, spans?.length ? statementView(spans) : plainStatement(text)),
  ];
}

/** How far the last submission is. @param {StagedEdits} edits @param {() => void} refresh */
function submissionView(edits, refresh) {
  const found = edits.submission.peek();
  if (!found) return null;
  const close = h("button", { class: "small quiet", "aria-label": "Dismiss", onclick: () => (edits.submission.value = null) }, icon("close"));
  const cancel = () => h("button", { class: "small", onclick: () => void edits.cancel() }, found.state === "asking" ? "Withdraw" : "Cancel");
  switch (found.state) {
    // With a message it is another gate that writes.
    case "running": return h("div", { class: "run-line running" }, h("span", { class: "spin", "aria-hidden": "true" }),
      found.message ? h("span", {}, prose(`${found.message} ${found.hint}`)) : [h("span", {}, "Writing …"), cancel()]);
    case "asking": return [h("div", { class: "run-line" }, h("strong", { class: "doubt" }, "Waits for a person's answer"), cancel()),
      found.approval ? questionView(found.approval) : null];
    case "done": return h("div", { class: "run-line done" }, icon("check"), h("strong", { class: "good" }, `Written: ${countsText(found.counts)}`),
      found.notes.map((note) => h("span", { class: "note" }, prose(note))), undoButton(found, refresh), close);
    case "conflict": return conflictsView(edits, found);
    default: return h("div", { class: "error failure", role: "alert" },
      h("p", {}, found.state === "cancelled" ? "Cancelled: nothing was written. " : found.state === "unknown" ? "It is unknown whether it was written. " : "Nothing was written. ",
        prose(found.message)),
      found.hint ? h("p", { class: "failure-hint" }, prose(found.hint)) : null,
      h("p", { class: "failure-more" }, found.code ? h("code", {}, visible(found.code)) : null, close));
  }
}

/** @param {Submission} done @param {() => void} refresh */
function undoButton({ change_id: change, approval }, refresh) {
  if (!change) return null;
  const key = approval ?? `change ${change}`;
  const undone = signal(false);
  return [
    () => (undone.value ? h("span", { class: "good" }, icon("check"), " The rows were put back") : h("button", { class: "small put-back", onclick: async () => {
      if (!(await putBack(change, key, Boolean(approval)))) return;
      undone.value = true;
      refresh();
    } }, icon("undo"), "Put these rows back")),
    () => (problems.value.get(key) ? h("span", { class: "error", role: "alert" }, prose(problems.value.get(key) ?? "")) : null),
  ];
}
