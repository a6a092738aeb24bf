/** Access: who has which rights, what gives them and what takes them away. */

import { budgetsPart } from "./access_budgets.js";
import { matrixView } from "./access_matrix.js";
import { firstPassphrase, operatorsPart, whyNot } from "./access_operators.js";
import { pairingsPart, tokensPart } from "./access_tokens.js";
import { revoke } from "./answer.js";
import { errorText, get, post } from "./api.js";
import { sourceChip } from "./card.js";
import { ask } from "./dialogs.js";
import { h, keyed, loadStyle } from "./dom.js";
import { onEnd, signal } from "./signals.js";
import { tableBox } from "./rows.js";
import { sourcesView } from "./source_list.js";
import { listen, pairings, route, say } from "./state.js";
import { isolated, prose, timeNode, visible, when } from "./text.js";

/** @typedef {import("./access_contract.js").Access} Access */
/** @typedef {import("./access_contract.js").OperatorSession} OperatorSession */
/** @typedef {import("./dom.js").Child} Child */

const VIEWS = /** @type {const} */ ([["", "Rights"], ["may", "What each may do"], ["sources", "Sources"]]);

/** The view, once its styles are there. @returns {Promise<() => Node>} */
export async function accessView() {
  await loadStyle("access.css");
  return view;
}

function view() {
  return h("div", { class: "access" },
    h("header", { class: "page-head" }, h("h1", {}, "Access"),
      h("nav", { class: "subpages", "aria-label": "Of Access" }, VIEWS.map(([id, label]) => h("a", {
        href: id ? `#/access/${id}` : "#/access",
        "aria-current": () => (route.value.id === id ? "page" : null),
      }, label)))),
    keyed(shown, () => (route.peek().id === "may" ? matrixView()
      : route.peek().id === "sources" ? sourcesView() : rightsView())));
}

/** Which view the address names. */
const shown = () => VIEWS.find(([id]) => id === route.value.id)?.[0] ?? "";

function rightsView() {
  const access = signal(/** @type {Access | null} */ (null));
  const error = signal("");
  let begun = 0;
  const load = async () => {
    const nth = (begun += 1);
    const known = pairings.peek();
    try {
      const found = /** @type {Access} */ (await get("access"));
      if (nth !== begun) return;  // a later one shows what came since
      access.value = found;
      // What an event has said meanwhile is not older than this.
      if (pairings.peek() === known) pairings.value = found.pairings;
      error.value = "";
    } catch (caught) {
      error.value = errorText(caught);
    }
  };
  /** Take something away, and say what went wrong. @param {() => Promise<void>} work */
  const attempt = async (work) => {
    try {
      await work();
    } catch (caught) {
      error.value = errorText(caught);
    }
  };
  /** @param {OperatorSession} session */
  const endSession = (session) => attempt(async () => {
    const title = "End the session";
    const body = h("p", {}, "The session of ", isolated(session.operator), " at ",
      isolated(session.address), " ends at once.");
    if (!await ask({ title, body, action: title, kind: "danger", read: () => true })) return;
    await post(`access/sessions/${encodeURIComponent(session.id)}/end`, {});
    say("The session has ended.");
    await load();
  });
  const budgets = budgetsPart(attempt);
  onEnd(listen("refreshed", () => void Promise.all([load(), budgets.load()])));
  void load();
  return h("div", { class: "rights" },
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    () => (access.value || error.value ? null : h("p", { class: "note" }, "Loading …")),
    keyed(() => access.value !== null, () => (access.peek()
      ? pairingsPart(() => /** @type {Access} */ (access.peek()), load, attempt) : null)),
    () => (access.value ? [
      access.value.invited ? firstPassphrase(load) : null, whyNot(access.value),
      tokensPart(access.value, load, attempt),
    ] : null),
    budgets.node,
    () => (access.value ? [
      grants(access.value, load), operatorsPart(access.value, load), sessions(access.value, endSession),
    ] : null));
}

/** @param {string} title @param {string[]} head @param {Child[][]} rows @param {string} none */
function table(title, head, rows, none) {
  return h("div", { class: "part" }, h("h2", {}, title),
    rows.length
      ? tableBox(title, h("table", { class: "records" },
        h("thead", {}, h("tr", {}, head.map((name) => (name
          ? h("th", { scope: "col" }, name) : h("td", {}))))),
        h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((each) => h("td", {}, each)))))))
      : h("p", { class: "note" }, none));
}

/** @param {Access} access @param {(session: OperatorSession) => Promise<void>} end */
const sessions = (access, end) => table("Sessions", ["Operator", "Since", "Last seen", "Address", "Browser", ""],
  access.sessions.map((session) => [
    [isolated(session.operator), session.current ? h("span", { class: "tag" }, "this one") : null],
    timeNode(session.since), timeNode(session.seen_at), isolated(session.address), isolated(session.browser),
    access.may.end || session.current
      ? h("button", { class: "small", onclick: () => void end(session) }, "End",
        h("span", { class: "sr" }, ` the session of ${session.operator} at ${session.address}`)) : null,
  ]), "No session.");

/** @param {Access} access @param {() => Promise<void>} load */
const grants = (access, load) => table("Grants", ["What", "Source", "Until", "Used", ""],
  access.grants.map((card) => [
    h("a", { href: `#/inbox/${encodeURIComponent(card.id)}` }, visible(card.sentence)), sourceChip(card.source),
    card.grant ? when(card.grant.until) : "", card.grant ? `${card.grant.uses} of ${card.grant.most_uses}` : "",
    card.may.revoke ?? card.may.deny
      ? h("button", { class: "small", onclick: () => void revoke(card).then(load) }, "End",
        h("span", { class: "sr" }, ` the grant: ${card.sentence}`)) : null,
  ]), "No grant holds for some minutes.");
