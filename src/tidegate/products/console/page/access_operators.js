/** Operators: invited by a link, given other roles, removed; and the first passphrase of one. */

import { form, labelled, namePicker, passphraseField, select, showSecret } from "./access_forms.js";
import { ApiError, post } from "./api.js";
import { h } from "./dom.js";
import { tableBox } from "./rows.js";
import { signal } from "./signals.js";
import { say, session } from "./state.js";
import { isolated, prose, timeNode } from "./text.js";

/** @typedef {import("./access_contract.js").Access} Access */
/** @typedef {import("./access_contract.js").Operator} Operator */
/** @typedef {import("./contract.js").Role} Role */
/** @typedef {() => Promise<void>} Load */

/** @param {Access} access @param {Load} load */
export const operatorsPart = (access, load) => h("div", { class: "part" },
  h("div", { class: "part-head" }, h("h2", {}, "Operators"),
    access.may.operators
      ? h("button", { class: "small primary", onclick: () => void invite(load) }, "Invite an operator …") : null),
  tableBox("Operators", h("table", { class: "records" },
    h("thead", {}, h("tr", {},
      ["Name", "Roles", "Since", "Sessions"].map((name) => h("th", { scope: "col" }, name)), h("td", {}))),
    h("tbody", {}, access.operators.map((operator) => h("tr", {},
      h("td", {}, isolated(operator.name), operator.invited ? h("span", { class: "tag" }, "invited") : null),
      h("td", {}, operator.roles.map(({ role, sources }) => h("div", {}, role, " of ",
        sources ? sources.map((name, index) => [index ? ", " : "", isolated(name)]) : "all sources"))),
      h("td", {}, timeNode(operator.created_at)), h("td", {}, String(operator.sessions)),
      h("td", { class: "actions" }, actions(operator, load))))))));

/** @param {Operator} operator @param {Load} load */
function actions(operator, load) {
  const of = () => h("span", { class: "sr" }, ` – ${operator.name}`);
  const path = `access/operators/${encodeURIComponent(operator.name)}`;
  return [
    operator.may.link ? h("button", { class: "small", onclick: () => void invitation(operator.name,
      (passphrase) => post(`${path}/link`, { passphrase }), "Make another link", null) }, "New link …", of()) : null,
    operator.may.roles ? h("button", { class: "small", onclick: () => void setRoles(operator, path, load) },
      "Roles …", of()) : null,
    operator.may.remove ? h("button", { class: "small", onclick: () => void remove(operator, path, load) },
      "Remove …", of()) : null,
    operator.may.why_not ? h("span", { class: "note" }, operator.may.why_not) : null,
  ];
}

/** Fields for roles: one line for each. @param {Role[]} given */
function rolesFields(given) {
  const known = session.peek()?.sources.map(({ name }) => name) ?? [];
  let count = 0;
  /** @param {Role} role */
  const line = ({ role, sources }) => {
    const id = `role-${(count += 1)}`;
    const which = select(id, [["viewer", "viewer: looks"], ["approver", "approver: looks and answers"],
      ["admin", "admin: also gives rights"]], role);
    const picker = namePicker({
      id: `${id}-sources`, label: `Sources of role ${count}`, known, chosen: sources, all: true,
    });
    return {
      node: h("div", { class: "role" }, labelled(id, `Role ${count}`, which), picker.node),
      read: () => ({ role: which.value, sources: picker.read() }),
    };
  };
  const lines = signal(given.map(line));
  return {
    node: [
      h("div", { class: "roles" }, () => lines.value.map(({ node }) => node)),
      h("div", { class: "role-buttons" },
        h("button", { type: "button", class: "small", onclick: () =>
          (lines.value = [...lines.peek(), line({ role: "viewer", sources: [] })]) }, "Add a role"),
        () => (lines.value.length > 1 ? h("button", { type: "button", class: "small", onclick: () =>
          (lines.value = lines.peek().slice(0, -1)) }, "Leave the last one out") : null)),
    ],
    read: () => lines.peek().map((each) => each.read()),
  };
}

/** @param {Load} load */
async function invite(load) {
  const name = h("input", { id: "operator-name", maxlength: "64", autocomplete: "off", spellcheck: "false" });
  const roles = rolesFields([{ role: "approver", sources: null }]);
  await invitation(null, (passphrase) =>
    post("access/operators", { name: name.value.trim(), roles: roles.read(), passphrase }),
  "Make a link", [labelled("operator-name", "Name", name), roles.node], () => name.value.trim());
  await load();
}

/** Ask for the passphrase, and show the link that comes of it.
 * @param {string | null} known @param {(passphrase: string) => Promise<any>} send @param {string} action
 * @param {import("./dom.js").Child} fields @param {() => string} [readName] */
async function invitation(known, send, action, fields, readName) {
  const passphrase = passphraseField();
  const made = await form({
    title: known === null ? "Invite an operator" : `Another link for ${known}`, action,
    body: [fields, h("p", { class: "note" },
      "The link signs in once, within an hour. The person who opens it chooses a passphrase: send it to that person alone."),
    passphrase.node],
    send: () => send(passphrase.read()),
  });
  if (!made) return;
  const name = known ?? readName?.() ?? "";
  await showSecret({
    title: "The link", secret: `${location.origin}/console#sign-in=${made.link}`,
    note: ["It signs in ", isolated(name), " once. It is not kept and not shown again."],
  });
  say("The link is made.");
}

/** @param {Operator} operator @param {string} path @param {Load} load */
async function setRoles(operator, path, load) {
  const roles = rolesFields(operator.roles);
  const passphrase = passphraseField();
  const done = await form({
    title: `Roles of ${operator.name}`, action: "Change the roles", body: [roles.node, passphrase.node],
    send: async () => {
      await post(`${path}/roles`, { was: operator.roles, roles: roles.read(), passphrase: passphrase.read() });
      return true;
    },
  });
  if (!done) return;
  say("The roles are changed.");
  await load();
}

/** @param {Operator} operator @param {string} path @param {Load} load */
async function remove(operator, path, load) {
  const passphrase = passphraseField();
  const done = await form({
    title: `Remove ${operator.name}`, action: "Remove", kind: "danger",
    body: [h("p", {}, "The account of ", isolated(operator.name),
      " is taken away, and its sessions end at once. Tokens that it owns stay."), passphrase.node],
    send: async () => {
      await post(`${path}/remove`, { passphrase: passphrase.read() });
      return true;
    },
  });
  if (!done) return;
  say("The operator is removed.");
  await load();
}

/** The box of an operator who was invited and has no passphrase yet. @param {Load} load */
export const firstPassphrase = (load) => h("div", { class: "notice invited" },
  h("p", {}, "You have no passphrase yet. Without one you can look, and sign in no second time."),
  h("button", { class: "primary", onclick: () => void choose(load) }, "Choose a passphrase …"));

/** @param {Load} load */
async function choose(load) {
  const [one, two] = ["new-passphrase", "same-passphrase"].map((id) =>
    h("input", { id, type: "password", autocomplete: "new-password", spellcheck: "false" }));
  const done = await form({
    title: "Choose a passphrase", action: "Keep it",
    body: [labelled("new-passphrase", "A new passphrase, of 8 characters or more", one),
      labelled("same-passphrase", "The same again", two)],
    send: async () => {
      if (one.value !== two.value) throw new ApiError(0, { message: "The two differ." });
      await post("access/passphrase", { passphrase: one.value });
      return true;
    },
  });
  if (!done) return;
  const now = session.peek();
  if (now) session.value = { ...now, invited: false, confirmed: true };
  say("The passphrase is set.");
  await load();
}

/** Why some buttons are not there. @param {Access} access */
export const whyNot = (access) => (access.may.why_not
  ? h("p", { class: "note" }, prose(access.may.why_not)) : null);
