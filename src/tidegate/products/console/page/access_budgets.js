/** Budgets: what callers may use in a minute, an hour or a day, and what is left of it. */

import { form, labelled, passphraseField } from "./access_forms.js";
import { get, post } from "./api.js";
import { h } from "./dom.js";
import { signal } from "./signals.js";
import { tableBox } from "./rows.js";
import { say } from "./state.js";
import { isolated, prose, timeNode, visible } from "./text.js";

/** @typedef {import("./access_contract.js").Budget} Budget */
/** @typedef {import("./access_contract.js").Budgets} Budgets */
/** @typedef {() => Promise<void>} Load */

const LOW = 0.2;

/** The part of Access. It is loaded by itself. @param {(work: () => Promise<void>) => Promise<void>} attempt
 * says what went wrong */
export function budgetsPart(attempt) {
  const found = signal(/** @type {Budgets | null} */ (null));
  const load = async () => {
    found.value = /** @type {Budgets} */ (await get("access/budgets"));
  };
  /** Tokens may have come since. */
  const begin = async () => {
    await load();
    const budgets = found.peek();
    if (budgets) await set(budgets, load);
  };
  void attempt(load);
  return {
    load: () => attempt(load),
    node: h("div", { class: "part" },
      () => {
        const budgets = found.value;
        if (!budgets || !(budgets.may.set || budgets.budgets.length)) return null;
        return [
          h("div", { class: "part-head" }, h("h2", {}, "Budgets"),
            budgets.may.set ? h("button", { class: "small", onclick: () => void attempt(begin) },
              "Set a budget …") : null),
          budgets.budgets.length ? table(budgets, load)
            : h("p", { class: "note" }, "No budget: callers may use as much as they like."),
        ];
      }),
  };
}

/** @param {Budgets} budgets @param {Load} load */
const table = (budgets, load) => tableBox("Budgets", h("table", { class: "records" },
  h("thead", {}, h("tr", {},
    ["For", "Budget", "Left now", "Renews"].map((name) => h("th", { scope: "col" }, name)), h("td", {}))),
  h("tbody", {}, budgets.budgets.map((budget) => h("tr", {},
    h("td", {}, prose(budget.about)),
    h("td", {}, visible(budget.size)),
    h("td", {}, h("meter", {
      min: "0", max: "1", low: String(LOW), optimum: "1", value: String(budget.share), "aria-hidden": "true",
    }), " ", budget.share <= LOW ? h("span", { class: "bad" }, visible(budget.left)) : visible(budget.left)),
    h("td", {}, timeNode(budget.renews_at)),
    h("td", { class: "actions" },
      h("button", { class: "small", onclick: () => void change(budget, load) }, "Change …", of(budget)),
      h("button", { class: "small", onclick: () => void remove(budget, load) }, "Remove …", of(budget))))))));

/** @param {Budget} budget */
const of = (budget) => h("span", { class: "sr" }, ` the budget of ${budget.size} for ${budget.about}`);

/** @param {string} id @param {string} none @param {string[]} names */
const choice = (id, none, names) => h("select", { id }, h("option", { value: "" }, none),
  names.map((name) => h("option", { value: name }, visible(name))));

/** @param {readonly string[]} names @param {string} id */
const oneOf = (id, names) => h("select", { id }, names.map((name) => h("option", { value: name }, name)));

/** @param {Budgets} budgets @param {Load} load */
async function set(budgets, load) {
  const amount = h("input", { id: "budget-amount", autocomplete: "off", maxlength: "40" });
  const [measure, span] = [oneOf("budget-measure", budgets.measures), oneOf("budget-window", budgets.windows)];
  const token = choice("budget-token", "any caller", budgets.tokens);
  const owner = choice("budget-owner", "no operator", budgets.owners);
  const source = choice("budget-source", budgets.may.whole ? "every source" : "every source of the token",
    budgets.sources);
  const passphrase = passphraseField("Your passphrase, if it raises one");
  const done = await form({
    title: "Set a budget", action: "Set the budget",
    body: [
      labelled("budget-amount", "How much, such as 500, 20k or 5M", amount),
      labelled("budget-measure", "Of", measure), labelled("budget-window", "In each (UTC)", span),
      labelled("budget-token", "For the token", token),
      budgets.owners.length ? labelled("budget-owner", "Or for all tokens of", owner) : null,
      labelled("budget-source", "On", source), passphrase.node,
    ],
    send: () => {
      const about = { token: token.value, owner: owner.value, source: source.value };
      const there = budgets.budgets.find((each) => each.token === about.token && each.owner === about.owner
        && each.source === about.source && each.measure === measure.value && each.window === span.value);
      return post("access/budgets", {
        ...about, measure: measure.value, window: span.value, amount: amount.value, was: there?.units ?? null,
        passphrase: passphrase.read(),
      });
    },
  });
  if (!done) return;
  say("The budget is set. It counts from the next call on.");
  await load();
}

/** @param {Budget} budget @param {Load} load */
async function change(budget, load) {
  const amount = h("input", {
    id: "budget-amount", autocomplete: "off", maxlength: "40", value: budget.amount,
  });
  const passphrase = passphraseField("Your passphrase, if it is raised");
  const { token, owner, source, measure, window: span, units: was } = budget;
  const done = await form({
    title: "Change the budget", action: "Change the budget",
    body: [h("p", {}, "For ", isolated(budget.about), ", now ", visible(budget.size), "."),
      labelled("budget-amount", `How many ${measure} in a ${span}`, amount), passphrase.node],
    send: () => post("access/budgets", {
      token, owner, source, measure, window: span, was, amount: amount.value, passphrase: passphrase.read(),
    }),
  });
  if (!done) return;
  say("The budget is changed. It counts from the next call on.");
  await load();
}

/** @param {Budget} budget @param {Load} load */
async function remove(budget, load) {
  const passphrase = passphraseField();
  const done = await form({
    title: "Remove the budget", action: "Remove the budget", kind: "danger",
    body: [h("p", {}, "There is no limit of ", visible(budget.size), " for ", isolated(budget.about), " any more."),
      passphrase.node],
    send: async () => {
      await post(`access/budgets/${encodeURIComponent(budget.id)}/remove`, {
        was: budget.units, passphrase: passphrase.read(),
      });
      return true;
    },
  });
  if (!done) return;
  say("The budget is removed.");
  await load();
}
