/** The side panel of one line: statement, decision, dry run, undo, proof, all that is on record. */

import { addressWith } from "./activity_data.js";
import { problems, putBack } from "./answer.js";
import { errorText, get } from "./api.js";
import { cardFacts, effectsView } from "./card.js";
import { dialogIsOpen } from "./dialogs.js";
import { h } from "./dom.js";
import { atGate, lineName } from "./gates.js";
import { icon } from "./icons.js";
import { onEnd, signal } from "./signals.js";
import { singleKeys } from "./state.js";
import { plainStatement, statementView } from "./statement.js";
import { counted, isolated, number, prose, timeNode, visible } from "./text.js";

/** @typedef {import("./contract.js").LineRecord} LineRecord */

/** @param {string} serial @param {() => void} close */
export function linePanel(serial, close) {
  const record = signal(/** @type {LineRecord | null} */ (null));
  const error = signal("");
  const ended = new AbortController();
  onEnd(() => ended.abort());
  const load = () => get(`activity/lines/${encodeURIComponent(serial)}`, ended.signal).then(
    (found) => (record.value = found),
    (caught) => ended.signal.aborted || (error.value = errorText(caught)));
  void load();
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || dialogIsOpen()) return;
    if (/** @type {HTMLElement} */ (event.target).closest?.("input, textarea, select")) return;
    if (event.key !== "u" || singleKeys.value === "off" || !record.peek()) return;
    event.preventDefault();
    void takeBack(/** @type {LineRecord} */ (record.peek()), load);
  };
  document.addEventListener("keydown", press);
  onEnd(() => document.removeEventListener("keydown", press));
  return h("aside", { class: "panel", "aria-label": "The line that is chosen", tabindex: "0" },
    h("button", { class: "close", "aria-label": "Close", onclick: close }, icon("close")),
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    () => {
      if (record.value) return content(record.value, load);
      return error.value ? null : h("p", { class: "note" }, "Loading …");
    });
}

/** Put the rows of the line's change back, where this operator may.
 * @param {LineRecord} record @param {() => unknown} reload */
async function takeBack({ change, approval }, reload) {
  if (!change?.may_undo) return;
  if (await putBack(change.id, approval?.id ?? change.id, Boolean(approval))) reload();
}

/** @param {LineRecord} record @param {() => unknown} reload */
function content(record, reload) {
  const { line, fields, proof, approval, change } = record;
  return [
    h("h2", {}, line.event ? isolated(line.event) : [isolated(line.actor_name || line.actor), " on ",
      isolated(line.source || "no source")]),
    h("p", { class: "meta" }, timeNode(line.time, true),
      h("span", { class: `outcome o-${line.outcome.replace(/[^a-z]/g, "")}` }, visible(line.outcome)),
      line.rows === null ? null : h("span", {}, counted(line.rows, "row")),
      line.ms === null ? null : h("span", {}, `${number(Math.round(line.ms * 10) / 10)} ms`)),
    h("p", { class: `proof-line p-${proof.state.replace(/[^a-z_]/g, "")}` },
      icon(proof.state === "mismatch" ? "warning" : "check"), visible(proof.text)),
    line.message ? h("p", { class: "error" }, line.code ? h("code", {}, visible(line.code)) : null, " ",
      prose(line.message)) : null,
    line.statement ? section("Statement", approval ? statementView(approval.statement) : plainStatement(line.statement)) : null,
    section("Decision", decision(line)),
    line.call_id && line.session ? h("p", {}, h("a", { href: addressWith({ session: atGate(line.call_id, line.gate), line: lineName(line) }) },
      "Open its session")) : null,
    approval ? section("What was shown", [effectsView(approval), cardFacts(approval), h("p", {},
      h("a", { href: `#/inbox/${encodeURIComponent(approval.id)}` }, "Open the question"))]) : null,
    change?.may_undo
      ? h("button", { class: "put-back", onclick: () => void takeBack(record, reload) },
        icon("undo"), "Put these rows back", h("kbd", { "aria-hidden": "true" }, "u")) : null,
    change?.state === "undone" ? h("p", { class: "note" }, icon("check"), " The rows were put back.") : null,
    approval || change
      ? () => {
        const problem = problems.value.get(approval?.id ?? change?.id ?? "");
        return problem ? h("p", { class: "error", role: "alert" }, prose(problem)) : null;
      } : null,
    section("On record", h("dl", { class: "fields" }, Object.entries(fields).map(([name, value]) =>
      h("div", {}, h("dt", {}, visible(name)), h("dd", {}, visible(
        typeof value === "string" ? value : JSON.stringify(value))))))),
    proof.hash ? section("Proof", h("dl", { class: "fields" },
      [["Segment", proof.segment], ["Number", proof.seq], ["Hash", proof.hash]].map(([name, value]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, h("code", {}, visible(String(value ?? "")))))))) : null,
  ];
}

/** @param {string} title @param {import("./dom.js").Child} body */
const section = (title, body) => h("section", { class: "part" }, h("h3", {}, title), body);

/** @param {import("./contract.js").Line} line */
function decision(line) {
  const pairs = [["Verdict", line.verdict], ["Rule", line.rule], ["Effect", line.effect],
    ["Through", [line.tool, line.surface].filter(Boolean).join(" of ")], ["Client", line.client],
    ["Address", line.address], ["Gate", line.gate ?? ""]];
  return h("dl", { class: "fields" }, pairs.filter(([, value]) => value).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, isolated(value)))));
}
