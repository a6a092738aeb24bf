/** Access: who is signed in, operators, tokens, and grants that hold for some minutes. */

import { revoke } from "./answer.js";
import { errorText, get, post } from "./api.js";
import { sourceChip } from "./card.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { tableBox } from "./rows.js";
import { signal } from "./signals.js";
import { say } from "./state.js";
import { isolated, timeNode, visible, when } from "./text.js";

/** @typedef {import("./contract.js").Access} Access */
/** @typedef {import("./dom.js").Child} Child */

export function accessView() {
  const access = signal(/** @type {Access | null} */ (null));
  const error = signal("");
  const load = async () => {
    try {
      access.value = await get("access");
      error.value = "";
    } catch (caught) {
      error.value = errorText(caught);
    }
  };
  /** @param {string} title @param {Child} body @param {string} path @param {string} done */
  const end = async (title, body, path, done) => {
    if (!await ask({ title, body, action: title, kind: "danger", read: () => true })) return;
    try {
      await post(path, {});
      say(done);
    } catch (caught) {
      error.value = errorText(caught);
      return;
    }
    await load();
  };
  void load();
  return h("div", { class: "access" },
    h("header", { class: "page-head" }, h("h1", {}, "Access")),
    () => (error.value ? h("p", { class: "error", role: "alert" }, visible(error.value)) : null),
    () => (access.value ? [
      access.value.may.why_not ? h("p", { class: "note" }, visible(access.value.may.why_not)) : null,
      sessions(access.value, end), grants(access.value, load), tokens(access.value, end), operators(access.value),
    ] : error.value ? null : h("p", { class: "note" }, "Loading …")));
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

/** @typedef {(title: string, body: Child, path: string, done: string) => Promise<void>} End */

/** @param {Access} access @param {End} end */
const sessions = (access, end) => table("Sessions", ["Operator", "Since", "Last seen", "Address", "Browser", ""],
  access.sessions.map((session) => [
    [isolated(session.operator), session.current ? h("span", { class: "tag" }, "this one") : null],
    timeNode(session.since), timeNode(session.seen_at), isolated(session.address), isolated(session.browser),
    access.may.end || session.current
      ? h("button", { class: "small", onclick: () => void end("End the session",
        [h("p", {}, "The session of ", isolated(session.operator), " at ", isolated(session.address), " ends at once.")],
        `access/sessions/${encodeURIComponent(session.id)}/end`, "The session has ended.") }, "End",
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

/** @param {Access} access @param {End} end */
const tokens = (access, end) => table("Tokens",
  ["Name", "Starts with", "Scope", "Sources", "Owner", "Last used", "Ends", ""],
  access.tokens.map((token) => [
    isolated(token.name), h("code", {}, visible(token.prefix)), visible(token.scope),
    token.sources ? visible(token.sources.join(", ")) : "all", isolated(token.owner ?? ""),
    token.last_used_at ? timeNode(token.last_used_at) : "never",
    token.revoked_at ? h("span", { class: "bad" }, "revoked") : token.expires_at ? timeNode(token.expires_at) : "never",
    access.may.revoke && !token.revoked_at
      ? h("button", { class: "small", onclick: () => void end("Revoke the token",
        [h("p", {}, "The token ", isolated(token.name), " is refused from the next call on. This is not taken back.")],
        `access/tokens/${encodeURIComponent(token.id)}/revoke`, "The token is revoked.") }, "Revoke",
      h("span", { class: "sr" }, ` the token ${token.name}`)) : null,
  ]), "No token.");

/** @param {Access} access */
const operators = (access) => table("Operators", ["Name", "Roles", "Since", "Sessions"],
  access.operators.map((operator) => [
    isolated(operator.name),
    operator.roles.map(({ role, sources }) => h("div", {}, role, " of ",
      sources ? visible(sources.join(", ")) : "all sources")),
    timeNode(operator.created_at), String(operator.sessions),
  ]), "No operator.");
