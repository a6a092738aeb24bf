/** A plan as a tree: rows, cost and time of each step, the costliest marked, the engine's text beside it. */

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { signal } from "./signals.js";
import { isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./query_contract.js").Plan} Plan */
/** @typedef {import("./query_contract.js").PlanNode} PlanNode */
/** @typedef {{ node: PlanNode, level: number, own: number, share: number, parent: Step | null,
 *   inside: Step[], isLast: boolean, place: number, of: number }} Step */

/** What a node counts: time where it was measured, else the cost. @param {PlanNode} node */
const measureOf = (node) => (hasTimes(node) ? "ms" : "cost");
/** @param {PlanNode} node @returns {boolean} */
const hasTimes = (node) => node.ms !== null || node.children.some(hasTimes);

/** The steps in order, each with its own share: what it counts without what is inside it.
 * @param {PlanNode} root @returns {Step[]} */
export function stepsOf(root) {
  const measure = measureOf(root);
  const steps = /** @type {Step[]} */ ([]);
  /** @param {PlanNode} node @param {Step | null} parent @param {number} place @param {number} of */
  const add = (node, parent, place, of) => {
    const all = node[measure] ?? 0;
    const inside = node.children.reduce((sum, child) => sum + (child[measure] ?? 0), 0);
    // Where the parts are more than the whole, the engine counts each step by itself.
    const own = inside > all * 1.001 ? all : all - inside;
    const step = { node, level: (parent?.level ?? 0) + 1, own, share: 0, parent, inside: /** @type {Step[]} */ ([]),
      isLast: place === of, place, of };
    steps.push(step);
    step.inside = node.children.map((child, index) => add(child, step, index + 1, node.children.length));
    return step;
  };
  add(root, null, 1, 1);
  const total = steps.reduce((sum, { own }) => sum + own, 0);
  for (const step of steps) step.share = total ? step.own / total : 0;
  return steps;
}

/** @param {number | null} value */
const amount = (value) => (value === null ? "" : number(Math.round(value * 100) / 100));

/** @param {Plan} plan */
export function planView(plan) {
  return h("div", { class: "plan" },
    plan.reason ? h("p", { class: "note" }, prose(plan.reason)) : null,
    h("div", { class: plan.tree ? "plan-both" : "plan-text-only" },
      plan.tree ? treeView(plan.tree) : null,
      h("pre", { class: "statement plan-text", tabindex: "0", role: "region", "aria-label": "The plan as text", dir: "ltr" },
        visible(plan.text || "The engine gives no text."))));
}

/** @param {PlanNode} root */
function treeView(root) {
  const steps = stepsOf(root);
  const most = steps.reduce((found, step) => (step.own > found.own ? step : found), steps[0]);
  const measured = measureOf(root) === "ms";
  const actual = steps.some(({ node }) => node.actual_rows !== null);
  const costs = steps.some(({ node }) => node.cost !== null);
  const counts = steps.some(({ node }) => node.rows !== null || node.actual_rows !== null);
  // An engine that gives neither costs nor times says nothing of a share.
  const shares = costs || measured;
  const closed = signal(/** @type {ReadonlySet<Step>} */ (new Set()));
  const active = signal(steps[0]);
  /** @param {Step} step */
  const isShown = (step) => {
    for (let above = step.parent; above; above = above.parent) if (closed.value.has(above)) return false;
    return true;
  };
  /** @param {Step} step @param {boolean} open */
  const setOpen = (step, open) => {
    const next = new Set(closed.peek());
    if (open) next.delete(step);
    else next.add(step);
    closed.value = next;
  };
  /** @type {Map<Step, HTMLElement>} */
  const nodes = new Map();
  /** @param {Step | null | undefined} step */
  const go = (step) => {
    if (!step) return;
    active.value = step;
    nodes.get(step)?.focus();
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const now = active.peek();
    const shown = steps.filter(isShown);
    const at = shown.indexOf(now);
    const open = now.inside.length > 0 && !closed.peek().has(now);
    if (event.key === "ArrowDown") go(shown[at + 1]);
    else if (event.key === "ArrowUp") go(shown[at - 1]);
    else if (event.key === "Home") go(shown[0]);
    else if (event.key === "End") go(shown.at(-1));
    else if (event.key === "ArrowRight") open ? go(now.inside[0]) : setOpen(now, true);
    else if (event.key === "ArrowLeft") open ? setOpen(now, false) : go(now.parent);
    else return;
    event.preventDefault();
  };
  const rows = steps.map((step) => {
    const { node } = step;
    const isMost = step === most && step.own > 0;
    const bar = h("span", { class: "share", "aria-hidden": "true" });
    bar.style.setProperty("--share", `${Math.round(step.share * 100)}%`);
    const figures = [
      counts ? ["rows", actual ? node.actual_rows : node.rows, actual && node.rows !== null ? `of ${amount(node.rows)} expected` : ""] : null,
      costs ? ["cost", node.cost, ""] : null, measured ? ["ms", node.ms, ""] : null,
    ].filter((each) => each !== null);
    const row = h("div", {
      class: isMost ? "step most" : "step", role: "treeitem", "aria-level": step.level, "aria-posinset": step.place,
      "aria-setsize": step.of, tabindex: () => (active.value === step ? "0" : "-1"), hidden: () => !isShown(step),
      "aria-expanded": step.inside.length ? () => String(!closed.value.has(step)) : null,
      onclick: () => (go(step), step.inside.length ? setOpen(step, closed.peek().has(step)) : undefined),
    },
      h("span", { class: "step-name" },
        step.inside.length ? icon("chevron") : h("span", { class: "leaf", "aria-hidden": "true" }),
        h("span", { class: "step-text" },
          h("strong", {}, isolated(node.label)), " ",
          isMost ? h("span", { class: "tag doubt" }, "costliest") : null, " ",
          node.detail ? h("span", { class: "detail" }, isolated(node.detail)) : null)),
      figures.map(([label, value, note]) => h("span", { class: "figure" },
        h("span", { class: "sr" }, `${label}: `), amount(/** @type {number | null} */ (value)) || h("span", { class: "sr" }, "unknown"),
        note ? h("span", { class: "sr" }, ` ${note}`) : null)),
      shares ? h("span", { class: "share-place" }, bar, h("span", { class: "percent" }, `${Math.round(step.share * 100)}%`)) : null);
    row.style.setProperty("--level", String(step.level - 1));
    nodes.set(step, row);
    return row;
  });
  const heads = [counts ? "Rows" : null, costs ? "Cost" : null, measured ? "Time, ms" : null].filter((each) => each !== null);
  const box = h("div", { class: shares ? "plan-tree" : "plan-tree no-shares" },
    h("div", { class: "step head", "aria-hidden": "true" }, h("span", {}, "Step"),
      heads.map((text) => h("span", { class: "figure" }, text)), shares ? h("span", { class: "share-place" }, "Own share") : null),
    h("div", { role: "tree", "aria-label": "Plan", onkeydown: press }, rows));
  box.style.setProperty("--figures", String(heads.length));
  return box;
}
