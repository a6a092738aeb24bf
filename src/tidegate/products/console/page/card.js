/** One question: what would happen, why it asks, whether it can be taken back, and the answer. */

import { allow, deny, problems, putBack, revoke } from "./answer.js";
import { h, keyed } from "./dom.js";
import { AllowGuard } from "./guard.js";
import { icon } from "./icons.js";
import { live } from "./live.js";
import { dryRunView } from "./rows.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { say, singleKeys } from "./state.js";
import { statementView } from "./statement.js";
import { ago, colorClass, counted, isolated, number, prose, timeNode, visible, when } from "./text.js";

/** @typedef {import("./contract.js").Card} Card */
/** @typedef {import("./signals.js").Signal<Card>} CardSignal */

const MINUTES = [5, 15, 30, 60, 120, 480];

/** @param {import("./contract.js").SourceLook} source */
export const sourceChip = (source) =>
  h("span", { class: `chip ${colorClass(source)}` },
    h("span", { class: "dot", "aria-hidden": "true" }),
    source.group ? h("span", { class: "group" }, isolated(source.group), " / ") : null, isolated(source.name));

/** @param {Card} card */
export function stateWord(card) {
  if (card.run?.undone) return "put back";
  if (card.run) return { running: "running", done: "done", failed: "failed", unknown: "unknown" }[card.run.state];
  return card.state;
}

/** @param {string} label @param {import("./dom.js").Child} content @param {string} [kind] */
const fact = (label, content, kind = "") =>
  h("div", { class: `fact ${kind}` }, h("dt", {}, label), h("dd", {}, content));

/** @param {string[]} names */
const names = (names) => names.map((name, index) => [index ? ", " : "", isolated(name)]);

/** @param {Card} card */
function waitingText({ waiting, expires_at, state, caller }) {
  if (state !== "pending") return "The question is closed.";
  if (caller.in_console) {
    return waiting.until ? [isolated(caller.name), " waits for the answer on the page Data."]
      : ["No page waits any more: after a yes ", isolated(caller.name), " must do it again."];
  }
  return waiting.until
    ? `The caller waits for the answer until ${when(waiting.until)}.`
    : "The caller does not wait: it must call again after the answer" +
      (expires_at ? `; the question ends at ${when(expires_at)}.` : ".");
}

/** @param {Card} card */
function undoFact({ undo, irreversible }) {
  const triggers = undo.triggers.length ? [" Triggers that may run again: ", names(undo.triggers), "."] : null;
  const reason = undo.reason ? [" ", prose(undo.reason)] : null;
  if (undo.possible && !irreversible) {
    return fact("Take back", ["Can be taken back.", reason, triggers], "good");
  }
  if (undo.possible === null && !irreversible) {
    return fact("Take back", ["Unknown whether it can be taken back.", reason, triggers], "doubt");
  }
  return fact("Take back", ["Cannot be taken back.", reason, triggers], "bad");
}

/** @param {Card} card */
function warnings(card) {
  const texts = [
    card.unqualified && "It may change every row of a table.",
    card.outside_transaction && "It runs outside a transaction: what it has done stays if it fails.",
    card.withheld && "*** replaces what may be a secret; the statement runs with the real value.",
  ].filter((text) => typeof text === "string");
  return texts.length
    ? h("ul", { class: "warnings" }, texts.map((text) => h("li", {}, icon("warning"), text))) : null;
}

/** @param {Card} card */
export function effectsView(card) {
  if (card.dry_run_hidden) {
    return h("p", { class: "note" }, visible(card.dry_run_hidden));
  }
  return card.dry_run ? dryRunView(card.dry_run, card.state !== "pending") : h("p", { class: "unknown" }, "Nothing was tried.");
}

/** @param {Card} card */
export function cardFacts(card) {
  const place = [card.database && ["database ", isolated(card.database)],
    card.schema && ["schema ", isolated(card.schema)]].filter(Boolean);
  return h("dl", { class: "facts" },
    fact("Why it asks", visible(card.why)),
    fact("What it does", prose(card.reason)),
    undoFact(card),
    card.limit ? fact("Limit", visible(card.limit)) : null,
    fact("Caller", [isolated(card.caller.name), card.caller.in_console ? ", in the console" : card.caller.client ? [" with ",
      isolated(card.caller.client)] : null, card.askers > 1 && card.state === "pending"
      ? `; ${card.askers} callers wait for this answer` : null]),
    fact("Waiting", waitingText(card)),
    fact("Tables", card.tables.length ? names(card.tables) : "none is named"),
    place.length ? fact("Place", place.map((part, index) => [index ? ", " : "", part])) : null,
    card.params !== null ? fact("Parameters", h("code", { class: "params" }, visible(card.params))) : null,
    card.caller.in_console ? null : fact("Through", [isolated(card.tool), " of ", isolated(card.surface)]));
}

/** What became of it, step by step. @param {Card} card */
function steps(card) {
  const list = /** @type {{ text: import("./dom.js").Child, state: string }[]} */ ([
    { text: ["Asked ", timeNode(card.asked_at)], state: "past" }]);
  const by = card.decided_by ? [" by ", isolated(card.decided_by.replace(/^operator:/, ""))] : null;
  const at = card.decided_at ? [" at ", timeNode(card.decided_at)] : null;
  if (card.state === "denied") list.push({ text: ["Denied", by, at], state: "bad" });
  else if (card.state === "expired" && !card.decided_at) {
    const end = card.ended_at ?? card.expires_at;
    list.push({ text: ["Ended without an answer", end ? [" at ", timeNode(end)] : null], state: "bad" });
  } else if (card.state !== "pending") list.push({ text: ["Allowed", by, at], state: "past" });
  const refused = card.refused ? [refusedStep(card.refused)] : [];
  const ranLast = Boolean(card.run && card.refused && card.run.at > card.refused.at);
  if (ranLast) list.push(...refused);
  if (card.run) list.push(...runSteps(card.run));
  else if (card.state === "allowed") {
    const again = card.caller.in_console ? [isolated(card.caller.name), " must do it again"] : "Waits for the caller to call again";
    list.push({ text: card.waiting.until ? "The caller goes on" : again, state: "present" });
  } else if (card.state === "expired") {
    list.push({ text: "Ended unused", state: "bad" });
  }
  if (!ranLast) list.push(...refused);
  return h("ol", { class: "steps" }, list.map(({ text, state }) => h("li", { class: state },
    state === "past" || state === "good" ? icon("check") : null, h("span", {}, text))));
}

/** The same call came again after the answer, and did not run. @param {NonNullable<Card["refused"]>} refused */
const refusedStep = ({ at, message, count }) => ({
  text: [count > 1 ? `Called again ${number(count)} times, and refused; the last time at ` : "Called again and refused at ",
    timeNode(at), message ? [": ", prose(message)] : null], state: "bad" });

/** @param {import("./contract.js").Run} run */
function runSteps(run) {
  const rows = run.rows === null ? "number of rows unknown" : counted(run.rows, "row");
  const last = {
    running: { text: ["Running since ", timeNode(run.at)], state: "present" },
    done: { text: [`Done: ${rows}, `, timeNode(run.at)], state: "good" },
    failed: { text: ["Failed at ", timeNode(run.at), run.message ? ": " : "", prose(run.message)], state: "bad" },
    unknown: { text: ["Unknown whether it ran", run.message ? ": " : "", prose(run.message)], state: "bad" },
  }[run.state];
  return run.undone ? [last, { text: "The rows were put back", state: "good" }] : [last];
}

/** @param {Card} card */
function aftermath(card) {
  if (card.state === "pending") return null;
  const change = card.run?.change_id;
  const canPutBack = change && card.run?.state === "done" && !card.run.undone;
  return h("section", { class: "after", "aria-label": "What became of it" },
    steps(card),
    card.decision_reason
      ? h("p", { class: "word" }, card.caller.in_console ? "The reason: " : "Word to the agent: ", h("q", {}, visible(card.decision_reason))) : null,
    card.grant
      ? h("p", { class: "grant" }, icon("clock"),
        `Allowed until ${when(card.grant.until)}: used ${card.grant.uses} of ${card.grant.most_uses} times. `,
        card.may.revoke ?? card.may.deny
          ? h("button", { class: "small", onclick: () => revoke(card) }, "End it now") : null)
      : null,
    canPutBack && card.may.undo
      ? h("button", { class: "put-back", onclick: () => putBack(String(change), card.id) },
        icon("undo"), "Put these rows back", h("kbd", { "aria-hidden": "true" }, "u")) : null,
    card.run?.state === "done" && !change && !card.run.undone
      ? h("p", { class: "note" }, "Cannot be taken back. ", prose(card.undo.reason)) : null);
}

/** The card and its answers. The returned keys are what the Inbox calls for its own.
 * @param {CardSignal} card @returns {{ node: HTMLElement, keys: Record<string, () => void> }} */
export function cardView(card) {
  const guard = new AllowGuard();
  const armed = signal(false);
  let shown = new AbortController();
  onEnd(() => {
    guard.stop();
    shown.abort();
  });
  const body = computed(() => {
    const { run, grant, may, refused, decided_at, decided_by, decision_reason, state, waiting, ...rest } = card.value;
    return JSON.stringify([rest, waiting, state === "pending"]);
  });
  const after = computed(() => {
    const { run, grant, may, refused, decided_at, state, decision_reason } = card.value;
    return JSON.stringify([run, grant, may, refused, decided_at, state, decision_reason]);
  });
  const mayAllow = computed(() => card.value.state === "pending" && card.value.may.allow);
  effect(() => {
    void [body.value, after.value];
    armed.value = false;
    guard.changed();
    shown.abort();
    shown = new AbortController();
  });
  const alive = () => guard.ready.value && live.value.ok;

  /** @param {number} minutes */
  const yes = (minutes) => {
    if (!mayAllow.peek() || !live.peek().ok || !guard.holds()) return;
    armed.value = false;
    void allow(card.peek(), minutes, shown.signal).then(rest);
  };
  const no = () => {
    const { state, may } = card.peek();
    if (state === "pending" && may.deny) void deny(card.peek(), shown.signal).then(rest);
  };
  // The buttons go with the answer: the focus goes on at the card.
  const rest = () => {
    const scroll = /** @type {HTMLElement | null} */ (node.querySelector(".card-scroll"));
    const focused = document.activeElement;
    if (card.peek().state === "pending") return;
    if (focused === document.body || focused?.closest(".card-actions")) scroll?.focus();
  };
  const arm = () => {
    if (!mayAllow.peek()) return;
    armed.value = true;
    say("Enter allows once. Escape goes back.");
    hint.focus();
  };
  const hint = h("div", {
    class: () => (armed.value ? "hint armed" : "hint"), tabindex: "-1", role: "group",
    "aria-label": "Enter allows once, Escape goes back",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (!armed.peek()) return;
      if (event.key === "Enter" && !event.repeat) yes(0);
      else if (event.key === "Escape") armed.value = false;
      else return;
      event.preventDefault();
    },
    onblur: () => (armed.value = false),
  }, () => hintText(card.value, armed.value));

  const actions = keyed(
    () => `${card.value.state} ${JSON.stringify(card.value.may)} ${card.value.irreversible}`,
    () => {
      const { may, state, irreversible } = card.peek();
      if (state !== "pending") return null;
      const choices = MINUTES.filter((minutes) => minutes <= may.minutes);
      if (may.minutes && !choices.length) choices.push(may.minutes);
      const dead = () => (alive() ? "false" : "true");
      const minutes = h("select", { "aria-label": "How long" },
        choices.map((each) => h("option", { value: each }, `${each} min`)));
      const once = h("button", {
        class: irreversible ? "allow danger" : "allow primary", "aria-disabled": dead,
        onclick: () => yes(0),
      }, "Allow once");
      guard.watch(once);
      return [
        may.deny ? h("button", { class: "deny", onclick: no }, "Deny", h("kbd", { "aria-hidden": "true" }, "d")) : null,
        may.allow ? once : null,
        may.allow && choices.length
          ? h("span", { class: "for-minutes" },
            h("button", { class: "allow", "aria-disabled": dead, onclick: () => yes(Number(minutes.value)) }, "Allow for"),
            minutes) : null,
        may.why_not ? h("p", { class: "why-not" }, prose(may.why_not)) : null,
      ];
    });

  const node = h("article", { class: () => `card ${colorClass(card.value.source)}`, "aria-labelledby": "card-title" },
    h("div", { class: "card-scroll", tabindex: "0", role: "region", "aria-label": "The question" },
      keyed(() => body.value, () => head(card)),
      () => {
        const problem = problems.value.get(card.value.id);
        return problem ? h("p", { class: "error", role: "alert" }, prose(problem)) : null;
      },
      keyed(() => after.value, () => aftermath(card.peek())),
      keyed(() => body.value, () => question(card.peek()))),
    h("footer", { class: () => (card.value.state === "pending" ? "card-actions" : "card-actions over") },
      actions, hint));
  const undo = () => {
    const { run, may, id } = card.peek();
    if (run?.change_id && run.state === "done" && !run.undone && may.undo) void putBack(run.change_id, id);
  };
  return { node, keys: { a: arm, d: no, u: undo } };
}

/** @param {Card} card @param {boolean} armed */
function hintText(card, armed) {
  if (card.state !== "pending") return null;
  if (!live.value.ok) return h("span", {}, "Allow waits until the page is live again.");
  if (armed) return h("span", {}, h("kbd", {}, "Enter"), " allows once, ", h("kbd", {}, "Esc"), " goes back");
  if (!card.may.allow || singleKeys.value === "off") return null;
  return h("span", { class: "quiet-hint" }, h("kbd", {}, "a"), " ", h("kbd", {}, "Enter"), " allow");
}

/** @param {CardSignal} signal */
function head(signal) {
  const card = signal.peek();
  return h("header", { class: "card-head" },
    h("div", { class: "tags" }, sourceChip(card.source),
      h("span", { class: `tag effect-${card.effect.replace(/[^a-z]/g, "")}` }, visible(card.effect)),
      h("span", { class: "age", title: when(card.asked_at, true) }, icon("clock"),
        () => (ago(card.asked_at) === "now" ? "just now" : `${ago(card.asked_at)} ago`))),
    h("h2", { id: "card-title" }, visible(card.sentence)),
    card.agent_reason
      ? h("p", { class: "agent-says" }, card.caller.in_console ? [isolated(card.caller.name), " says: "] : "The agent says: ", h("q", {}, visible(card.agent_reason))) : null,
    warnings(card));
}

/** @param {Card} card */
function question(card) {
  return [
    h("section", { class: "part" }, h("h3", {}, "What changes"), effectsView(card)),
    h("section", { class: "part" }, h("h3", {}, "Statement"), statementView(card.statement)),
    h("section", { class: "part" }, h("h3", {}, "About it"), cardFacts(card)),
  ];
}
