/** The Inbox: what waits, in a list; one card beside it. */

import { cardView, sourceChip, stateWord } from "./card.js";
import { dialogIsOpen, showKeys } from "./dialogs.js";
import { each, h, keyed } from "./dom.js";
import { gateName, lineName, missingGates } from "./gates.js";
import { icon } from "./icons.js";
import { computed, effect, onEnd } from "./signals.js";
import { cards, go, newestLines, route, singleKeys } from "./state.js";
import { ago, counted, isolated, timeNode, visible, when } from "./text.js";

/** @typedef {import("./contract.js").Card} Card */

const RENEW_MS = 3_000;
const NARROW = matchMedia("(max-width: 720px)");

/** @param {string} id */
const link = (id) => `#/inbox/${encodeURIComponent(id)}`;

export function inboxView() {
  const shown = computed(() => [...cards.pending, ...cards.recent]);
  const chosen = computed(() => route.value.id);
  let keys = /** @type {Record<string, () => void>} */ ({});

  // The first question is shown by itself, but never in the place of another.
  effect(() => {
    const [first] = cards.pending;
    if (route.value.page === "inbox" && !route.value.id && first && !NARROW.matches) {
      go(link(first.id), { replace: true });
    }
  });
  effect(() => {
    const id = chosen.value;
    if (id && cards.loaded.value && !cards.all.peek().has(id)) void cards.reload(id).catch(() => {});
  });

  /** @param {number} step */
  const move = (step) => {
    const list = shown.peek();
    const at = list.findIndex(({ id }) => id === chosen.peek());
    const next = list[Math.min(Math.max(at + step, 0), list.length - 1)];
    if (!next) return;
    go(link(next.id), { replace: true });
    document.querySelector(`[data-card="${CSS.escape(next.id)}"]`)?.scrollIntoView({ block: "nearest" });
  };
  const all = { j: () => move(1), k: () => move(-1), "?": () => void showKeys() };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || dialogIsOpen()) return;
    if (singleKeys.value === "off" && event.key !== "?") return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest?.("input, textarea, select")) return;
    const action = { ...keys, ...all }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  document.addEventListener("keydown", press);
  onEnd(() => document.removeEventListener("keydown", press));

  const known = computed(() => cards.all.value.has(chosen.value));
  const pane = keyed(() => `${known.value} ${chosen.value}`, () => {
    keys = {};
    if (!known.peek()) return emptyPane(chosen.peek());
    const id = chosen.peek();
    const first = /** @type {Card} */ (cards.all.peek().get(id));
    const card = computed(() => cards.all.value.get(id) ?? first);
    const view = cardView(card);
    keys = view.keys;
    return view.node;
  });
  return h("div", { class: () => `inbox ${route.value.id ? "has-card" : ""}` },
    h("h1", { class: "sr" }, "Inbox"),
    h("section", { class: "list", "aria-label": "Questions" }, list()),
    h("section", { class: "pane", "aria-label": "The question that is shown" },
      h("a", { class: "back", href: "#/inbox" }, icon("back"), "All questions"), pane));
}

function list() {
  return [
    h("div", { class: "title", "aria-hidden": "true" }, "Inbox"),
    () => webhookNote(cards.webhook.value),
    () => (cards.loaded.value && !cards.pending.length ? h("p", { class: "nothing" }, "Nothing waits.") : null),
    h("ul", { class: "cards" }, each(() => cards.pending, (card) => card.id, row)),
    () => (cards.recent.length ? h("h2", { class: "over" }, "Answered") : null),
    h("ul", { class: "cards" }, each(() => cards.recent, (card) => card.id, row)),
  ];
}

/** Messages about questions that do not arrive. @param {import("./contract.js").Webhook | undefined} health */
export function webhookNote(health) {
  if (!health || health.state === "off" || health.state === "ok") return null;
  return h("p", { class: "webhook-note" }, icon("warning"), h("span", {},
    health.state === "stopped" ? "The webhook has stopped" : "The webhook fails",
    health.since ? ` since ${when(health.since)}` : "", ": ", visible(health.message), ". ",
    health.waiting ? `${counted(health.waiting, "message")} wait${health.waiting === 1 ? "s" : ""}.` : ""));
}

/** @param {import("./signals.js").Signal<Card>} card */
function row(card) {
  const { id } = card.peek();
  return h("li", {}, h("a", {
    href: link(id), "data-card": id,
    "aria-current": () => (route.value.id === id ? "true" : null),
    class: () => `row ${card.value.state}`,
  },
    h("span", { class: "row-top" },
      keyed(() => JSON.stringify(card.value.source), () => sourceChip(card.peek().source)),
      h("span", { class: () => `state s-${stateWord(card.value).replace(" ", "-")}` },
        () => (card.value.state === "pending" ? "" : stateWord(card.value))),
      h("span", { class: "age" }, () => ago(card.value.decided_at ?? card.value.asked_at))),
    h("span", { class: "row-text" }, keyed(() => card.value.sentence, () => visible(card.peek().sentence)))));
}

/** Follow what agents do while it is in sight, in steps of some seconds. */
function followCalls() {
  let [timer, asked] = [0, 0];
  const renew = () => {
    [timer, asked] = [0, Date.now()];
    void cards.renew().catch(() => {}); // the next line asks again
  };
  effect(() => {
    const more = Object.keys(newestLines.value).length || (cards.loaded.value && !cards.whole.value);
    if (more && !timer) timer = setTimeout(renew, Math.max(0, asked + RENEW_MS - Date.now()));
  });
  onEnd(() => clearTimeout(timer));
}

/** @param {string} id what was asked for, and is not there */
function emptyPane(id) {
  followCalls();
  return h("div", { class: "empty" }, () => {
    if (!cards.loaded.value) return h("p", {}, "Loading …");
    const [last] = cards.recent.filter((card) => card.decided_at);
    const fresh = cards.whole.value && cards.steps.value && !cards.steps.value.client && !cards.recent.length;
    return [
      h("h2", {}, id ? "This question is not here" : "Nothing waits"),
      h("p", { class: "lead" }, id ? "It has ended, or you may not see it."
        : last?.decided_at ? `Last decision ${when(last.decided_at)}.` : "No decision yet."),
      fresh && cards.steps.value ? firstSteps(cards.steps.value) : [agents(), calls()],
      missingGates(cards.gates.value.missing),
    ];
  });
}

function agents() {
  return h("section", {}, h("h3", {}, "Agents"),
    cards.agents.value.length
      ? h("ul", { class: "plain" }, cards.agents.value.map((agent) => h("li", {},
        h("strong", {}, isolated(agent.name)), agent.client ? [" with ", isolated(agent.client)] : null, " ",
        h("span", { class: "age" }, () => `last call ${ago(agent.last_at) === "now" ? "just now" : `${ago(agent.last_at)} ago`}`))))
      : h("p", { class: "note" }, cards.whole.value ? "None is connected now." : "Other gates are asked …"));
}

function calls() {
  if (!cards.calls.value.length) return null;
  return h("section", {}, h("h3", {}, "Last calls"),
    h("ul", { class: "plain calls" }, cards.calls.value.map((line) => h("li", {},
      h("a", { href: `#/activity?line=${encodeURIComponent(lineName(line))}` },
        timeNode(line.time), h("span", { class: `outcome o-${line.outcome.replace(/[^a-z]/g, "")}` }, visible(line.outcome)),
        h("span", { class: "text" }, gateName(cards.gates.value, line.gate), visible(line.statement || line.tool || line.event)))))));
}

/** @param {import("./contract.js").Steps} steps */
function firstSteps({ source, token }) {
  /** @param {boolean} done @param {string} what @param {string} command */
  const step = (done, what, command) => h("li", { class: done ? "done" : "" },
    h("strong", {}, done ? h("span", { class: "sr" }, "Done: ") : null, what), h("code", {}, command));
  return h("ol", { class: "first-steps" },
    step(source, "Add a source. ", "tidegate source add shop sqlite:////data/shop.db"),
    step(token, "Make a token for the agent. ", "tidegate token create analyst --scope readWrite --source shop"),
    step(false, "Write the entry of its client. ", "tidegate install cursor"));
}
