/** Tokens: made and shown once, limited, revoked; and the requests of clients for one. */

import { form, labelled, listWords, ownerField, passphraseField, rightsFields, showSecret } from "./access_forms.js";
import { post } from "./api.js";
import { ask } from "./dialogs.js";
import { each, h } from "./dom.js";
import { onEnd, signal } from "./signals.js";
import { tableBox } from "./rows.js";
import { pairings, say } from "./state.js";
import { clock, counted, isolated, prose, serverTime, timeNode, visible } from "./text.js";

/** @typedef {import("./access_contract.js").Access} Access */
/** @typedef {import("./access_contract.js").Pairing} Pairing */
/** @typedef {import("./access_contract.js").Token} Token */
/** @typedef {() => Promise<void>} Load */

const SOON_S = 7 * 86_400;

/** @typedef {(work: () => Promise<void>) => Promise<void>} Attempt says what went wrong */

/** @param {Access} access @param {Load} load @param {Attempt} attempt */
export function tokensPart(access, load, attempt) {
  const active = access.tokens.filter(({ state }) => state === "active");
  const ended = access.tokens.filter(({ state }) => state !== "active");
  return h("div", { class: "part" },
    h("div", { class: "part-head" }, h("h2", {}, "Tokens"),
      access.may.make
        ? h("button", { class: "small primary", onclick: () => void make(access, load) }, "Make a token …")
        : null),
    active.length ? table("Tokens that count", active, access, load, attempt)
      : h("p", { class: "note" }, access.may.make ? "No token." : "You may not see tokens."),
    ended.length ? h("details", {}, h("summary", {}, `${counted(ended.length, "token")} that ended`),
      table("Tokens that ended", ended, access, load, attempt)) : null);
}

/** @param {string} label @param {Token[]} tokens @param {Access} access @param {Load} load @param {Attempt} attempt */
const table = (label, tokens, access, load, attempt) => tableBox(label, h("table", { class: "records" },
  h("thead", {}, h("tr", {},
    ["Name", "May", "Where", "Owner", "Last used", "Ends"].map((name) => h("th", { scope: "col" }, name)),
    h("td", {}))),
  h("tbody", {}, tokens.map((token) => h("tr", {},
    h("td", {}, isolated(token.name), " ", h("code", {}, visible(token.prefix)),
      token.proxy ? h("span", { class: "tag" }, "proxy") : null),
    h("td", {}, visible(token.scope), token.max_rows_changed
      ? [h("br"), `at most ${counted(token.max_rows_changed, "row")}`] : null),
    h("td", {}, listWords(token)),
    h("td", {}, token.owner ? isolated(token.owner) : h("span", { class: "tag" }, "no owner")),
    h("td", {}, token.last_used_at ? timeNode(token.last_used_at) : "never"),
    h("td", {}, end(token)),
    h("td", { class: "actions" }, actions(token, access, load, attempt)))))));

/** @param {Token} token */
function end(token) {
  if (token.state === "revoked") return h("span", { class: "bad" }, "revoked");
  if (token.state === "expired") return h("span", { class: "bad" }, "expired");
  if (!token.expires_at) return "never";
  const left = token.expires_at - clock.peek();
  const days = Math.floor(left / 86_400);
  return [timeNode(token.expires_at), left < SOON_S
    ? h("span", { class: "tag soon" }, days ? `in ${counted(days, "day")}` : "within a day") : null];
}

/** @param {Token} token @param {Access} access @param {Load} load @param {Attempt} attempt */
function actions(token, access, load, attempt) {
  if (token.state !== "active") return null;
  if (!token.may.change) return h("span", { class: "note" }, prose(token.may.why_not));
  /** @param {string} text */
  const of = (text) => h("span", { class: "sr" }, ` ${text} ${token.name}`);
  return [
    h("a", { class: "small", href: `#/access/may?caller=${encodeURIComponent(`token:${token.id}`)}` },
      "What it may do", of("– the token")),
    h("button", { class: "small", onclick: () => void change(token, access, load) }, "Change …",
      of("the token")),
    h("button", { class: "small", onclick: () => void attempt(() => revoke(token, load)) }, "Revoke", of("the token")),
  ];
}

/** @param {Access} access @param {Load} load */
async function make(access, load) {
  const name = h("input", { id: "token-name", maxlength: "64", autocomplete: "off", spellcheck: "false" });
  const rights = rightsFields({
    given: { scope: "readOnly", sources: access.may.of ?? [], tags: null, tables: null },
    of: access.may.of, expires: "90d",
  });
  const owner = ownerField(access.operators, access.may.operators);
  const passphrase = passphraseField();
  const made = await form({
    title: "Make a token", action: "Make the token",
    body: [labelled("token-name", "Name, such as the client's", name), rights.node, owner.node,
      passphrase.node],
    send: () => post("access/tokens", {
      name: name.value.trim(), ...rights.read(), owner: owner.read(), passphrase: passphrase.read(),
    }),
  });
  if (!made) return;
  say("The token is made.");
  await showSecret({
    title: "The token", secret: made.secret,
    note: ["Give it to ", isolated(made.token.name), " now: it is not kept and not shown again."],
  });
  await load();
}

/** @param {Token} token @param {Access} access @param {Load} load */
async function change(token, access, load) {
  const rights = rightsFields({ given: token, of: access.may.of, keep: "as it is", expires: "keep" });
  const passphrase = passphraseField("Your passphrase, if it gets more than it has");
  const changed = await form({
    title: `Change ${token.name}`, action: "Change the token",
    body: [h("p", { class: "note" }, "What runs with rights that it loses ends at once."), rights.node,
      passphrase.node],
    send: () => post(`access/tokens/${encodeURIComponent(token.id)}/change`, {
      ...rights.read(), version: token.version, passphrase: passphrase.read(),
    }),
  });
  if (!changed) return;
  say("The token is changed.");
  await load();
}

/** @param {Token} token @param {Load} load */
async function revoke(token, load) {
  const done = await ask({
    title: "Revoke the token", action: "Revoke the token", kind: "danger", read: () => true,
    body: h("p", {}, "The token ", isolated(token.name),
      " is refused from the next call on, and what it runs ends. This is not taken back."),
  });
  if (!done) return;
  await post(`access/tokens/${encodeURIComponent(token.id)}/revoke`, {});
  say("The token is revoked.");
  await load();
}

/** Requests that wait. @param {() => Access} access @param {Load} load @param {Attempt} attempt */
export function pairingsPart(access, load, attempt) {
  const now = signal(serverTime());
  const timer = setInterval(() => (now.value = serverTime()), 1000);
  onEnd(() => clearInterval(timer));
  const cards = each(() => pairings.value, ({ id }) => id, (item) => {
    const asked = item.peek();
    return h("article", { class: "request", "aria-labelledby": `asks-${asked.id}` },
      h("h3", { id: `asks-${asked.id}`, class: "asks" }, isolated(asked.client), " asks for a token"),
      h("dl", { class: "facts" }, [
        ["Code", [h("code", {}, visible(asked.id)), " – the client shows the same one"]],
        ["From", isolated(asked.address)], ["Wants", visible(asked.wanted.scope)],
        ["On", listWords(asked.wanted)],
        ["For", asked.wanted.lasts_s === null ? "ever" : counted(Math.round(asked.wanted.lasts_s / 86_400), "day")],
        ["Answer within", () => remaining(asked.expires_at - now.value)],
      ].map(([name, value]) => h("div", { class: "fact" }, h("dt", {}, /** @type {string} */ (name)),
        h("dd", {}, /** @type {any} */ (value))))),
      h("div", { class: "request-actions" },
        h("a", { href: `#/access/may?caller=${encodeURIComponent(`request:${asked.id}`)}` },
          "What it would be able to do", h("span", { class: "sr" }, ` – ${asked.client}`)),
        h("button", { onclick: () => void attempt(() => deny(asked)) }, "Deny", h("span", { class: "sr" }, ` ${asked.client}`)),
        h("button", { class: "primary", onclick: () => void approve(asked, access(), load) }, "Approve …",
          h("span", { class: "sr" }, ` ${asked.client}`))));
  });
  return () => (pairings.value.length
    ? h("div", { class: "part" },
      h("h2", {}, "Clients that ask for a token"), h("div", { class: "asking" }, cards))
    : null);
}

/** @param {number} left */
function remaining(left) {
  const seconds = Math.max(0, Math.round(left));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** @param {Pairing} asked @param {Access} access @param {Load} load */
async function approve(asked, access, load) {
  const name = h("input", { id: "token-name", maxlength: "64", value: asked.client, spellcheck: "false" });
  const wanted = asked.wanted;
  const rights = rightsFields({
    given: wanted, of: wanted.sources ?? access.may.of, narrow: true, expires: "keep",
    keep: "as it asks for",
  });
  const owner = ownerField(access.operators, access.may.operators);
  const passphrase = passphraseField();
  const done = await form({
    title: `Give ${asked.client} a token`, action: "Approve",
    body: [
      h("p", {}, "Compare the code ", h("code", {}, visible(asked.id)), " with the one that the client shows: ",
        "a stranger can use any name. You can give less than it asks for, and not more."),
      labelled("token-name", "Name of the token", name), rights.node, owner.node, passphrase.node,
    ],
    send: async () => {
      await post(`access/pairings/${encodeURIComponent(asked.id)}/approve`, {
        ...rights.read(), name: name.value.trim(), owner: owner.read(), passphrase: passphrase.read(),
      });
      return true;
    },
  });
  if (!done) return;
  say("Approved. The client fetches its token now.");
  await load();
}

/** @param {Pairing} asked */
async function deny(asked) {
  await post(`access/pairings/${encodeURIComponent(asked.id)}/deny`, {});
  say("Denied.");
}
