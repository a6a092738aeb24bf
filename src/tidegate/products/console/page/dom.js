/**
 * DOM nodes, made one by one and never from markup: no value can become markup, and
 * `require-trusted-types-for 'script'` holds.
 */

import { computed, effect, onEnd, root, signal, untracked } from "./signals.js";

/** @typedef {import("./signals.js").Stop} Stop */
/** @template T @typedef {import("./signals.js").Signal<T>} Signal */
/** @typedef {string | number | boolean | null | undefined | Node | Child[] | (() => Child)} Child */

/** Content that is built again only when its key changes.
 * @param {() => string | number | boolean | null} readKey @param {() => Child} render */
export function keyed(readKey, render) {
  const key = computed(readKey);
  return () => (void key.value, /** @type {Child} */ (untracked(render)));
}

/** Nodes for a list, kept as long as their key is in it.
 * @template T @param {() => readonly T[]} read @param {(item: T) => string} keyOf
 * @param {(item: Signal<T>) => Node} render @returns {() => Node[]} */
export function each(read, keyOf, render) {
  /** @type {Map<string, { item: Signal<T>, node: Node, stop: Stop }>} */
  const kept = new Map();
  onEnd(() => kept.forEach(({ stop }) => stop()));
  return () => {
    const items = read();
    const wanted = new Set(items.map(keyOf));
    for (const [key, { stop }] of kept) if (!wanted.has(key)) (stop(), kept.delete(key));
    return items.map((value) => {
      const found = kept.get(keyOf(value));
      if (found) return ((found.item.value = value), found.node);
      const item = signal(value);
      const [node, stop] = root(() => render(item));
      kept.set(keyOf(value), { item, node, stop });
      return node;
    });
  };
}

const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate"]);
const FORBIDDEN = /^(style|srcdoc|innerhtml|outerhtml|src|action|formaction)$/i;

/** @param {Element} node @param {string} name @param {unknown} value */
function assign(node, name, value) {
  if (FORBIDDEN.test(name) || (name === "href" && !/^(#|\/console\/)/.test(String(value)))) {
    throw new Error(`${name} is not set here`);
  }
  if (PROPERTIES.has(name)) /** @type {any} */ (node)[name] = value;
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** Make an element. `onNAME` are listeners; any other property that is a function is reactive.
 * @template {keyof HTMLElementTagNameMap} K @param {K} tag
 * @param {Record<string, any>} [properties] @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]} */
export function h(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (typeof value === "function") effect(() => assign(node, name, value()));
    else assign(node, name, value);
  }
  for (const child of children) append(node, child);
  return node;
}

/** @param {ParentNode & Node} parent @param {any} child */
export function append(parent, child) {
  if (child === null || child === undefined || typeof child === "boolean") return;
  if (Array.isArray(child)) child.forEach((each) => append(parent, each));
  else if (child instanceof Node) parent.append(child);
  else if (typeof child === "function") appendLive(parent, child);
  else parent.append(String(child));
}

/** Content between two marks, replaced when what it reads changes; nodes that stay are not moved.
 * @param {ParentNode & Node} parent @param {() => Child} read */
function appendLive(parent, read) {
  const [first, last] = [new Comment(), new Comment()];
  parent.append(first, last);
  effect(() => {
    const made = document.createElement("div");
    const value = read();
    const nodes = Array.isArray(value) && value.every((each) => each instanceof Node)
      ? /** @type {Node[]} */ (value)
      : (append(made, value), [...made.childNodes]);
    const stay = new Set(nodes);
    /** @type {Node} */
    let place = first;
    for (let old = first.nextSibling; old && old !== last;) {
      const next = old.nextSibling;
      if (!stay.has(old)) old.remove();
      old = next;
    }
    for (const node of nodes) {
      if (place.nextSibling !== node) last.parentNode?.insertBefore(node, place.nextSibling);
      place = node;
    }
  });
}

/** The address of a file of this page's own build. @param {string} name */
const fileAddress = (name) => new URL(`./${name}`, import.meta.url).pathname;

/** Fetch what a module needs that is loaded later, all at once, before its imports ask one by one.
 * @param {string} name */
export function fetchNeeds(name) {
  const needs = document.querySelector(`meta[name="tidegate-needs"][data-module="${name}"]`);
  for (const file of needs?.getAttribute("content")?.split(" ") ?? []) {
    const href = fileAddress(file);
    document.head.append(file.endsWith(".css")
      ? h("link", { rel: "preload", as: "style", href }) : h("link", { rel: "modulepreload", href }));
  }
  needs?.remove();
}

/** Load a stylesheet of ours, once. @param {string} name @returns {Promise<unknown>} */
export function loadStyle(name) {
  const href = fileAddress(name);
  if (document.querySelector(`link[rel="stylesheet"][href="${href}"]`)) return Promise.resolve();
  return new Promise((resolve, reject) => {
    document.head.append(h("link", { rel: "stylesheet", href, onload: resolve, onerror: reject }));
  });
}
