/** A menu of what can be done with one thing: by the secondary button, a long touch, and by keys. */

import { h } from "./dom.js";

/** An entry; null is a line between others.
 * @typedef {{ label: string, keys?: string, run: () => void, disabled?: boolean } | null} MenuItem */
/** @typedef {{ label: string, items: MenuItem[], at: Element | null }} Menu */

const EDGE = 8;

/** Give an element a menu. `read` gets the event of a pointer, or null if keys ask for the menu of
 * what is active; it gives null where there is none.
 * @param {HTMLElement} host @param {(event: MouseEvent | null) => Menu | null} read */
export function contextMenu(host, read) {
  host.addEventListener("contextmenu", (event) => {
    const menu = read(event);
    if (!menu) return;
    event.preventDefault();
    showMenu(menu, event.clientX, event.clientY);
  });
  host.addEventListener("keydown", (event) => {
    if (!(event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey))) return;
    const menu = read(null);
    if (!menu) return;
    event.preventDefault();
    event.stopPropagation();
    const box = (menu.at ?? host).getBoundingClientRect();
    showMenu(menu, box.left + Math.min(24, box.width / 2), box.bottom);
  });
}

/** @param {Menu} menu @param {number} x @param {number} y */
function showMenu({ label, items }, x, y) {
  const before = document.activeElement;
  const leave = () => {
    if (!node.isConnected) return;
    const inside = node.contains(document.activeElement);
    node.remove();
    if (inside && before instanceof HTMLElement) before.focus({ preventScroll: true });
  };
  const entries = items.map((item) => (item === null
    ? h("div", { role: "separator" })
    : h("button", {
      type: "button", role: "menuitem", tabindex: "-1", "aria-disabled": item.disabled ? "true" : null,
      onclick: () => {
        if (item.disabled) return;
        leave();
        item.run();
      },
    }, h("span", {}, item.label), item.keys ? h("kbd", { "aria-hidden": "true" }, item.keys) : null)));
  const buttons = entries.filter((each) => each instanceof HTMLButtonElement);
  const node = h("div", {
    class: "context-menu", role: "menu", popover: "auto", "aria-label": label,
    oncontextmenu: (/** @type {Event} */ event) => event.preventDefault(),
    ontoggle: (/** @type {ToggleEvent} */ event) => event.newState === "closed" && leave(),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
      const to = { ArrowDown: (at + 1) % buttons.length, ArrowUp: (at - 1 + buttons.length) % buttons.length,
        Home: 0, End: buttons.length - 1 }[event.key] ?? byLetter(buttons, at, event.key);
      if (event.key === "Escape" || event.key === "Tab") leave();
      else if (to !== undefined) buttons[to].focus();
      else return;
      event.preventDefault();
    },
  }, entries);
  (document.getElementById("main") ?? document.body).append(node);
  node.showPopover();
  const { width, height } = node.getBoundingClientRect();
  node.style.left = `${Math.max(EDGE, Math.min(x, innerWidth - width - EDGE))}px`;
  node.style.top = `${Math.max(EDGE, Math.min(y, innerHeight - height - EDGE))}px`;
  buttons[0]?.focus();
}

/** The next entry that begins with a letter.
 * @param {HTMLElement[]} buttons @param {number} at @param {string} key */
function byLetter(buttons, at, key) {
  if (key.length !== 1 || key === " ") return undefined;
  const step = buttons.findIndex((_, index) =>
    buttons[(at + 1 + index) % buttons.length].textContent?.toLowerCase().startsWith(key.toLowerCase()));
  return step < 0 ? undefined : (at + 1 + step) % buttons.length;
}
