/** The card of a question in the place where it arose, answered under the same rules as in the Inbox. */

import { errorText } from "./api.js";
import { cardView } from "./card.js";
import { h, keyed } from "./dom.js";
import { computed, signal } from "./signals.js";
import { cards, say } from "./state.js";
import { prose } from "./text.js";

/** @param {string} id */
export function questionView(id) {
  const trouble = signal("");
  if (!cards.all.peek().has(id)) cards.reload(id).catch((error) => (trouble.value = errorText(error)));
  const known = computed(() => cards.all.value.has(id));
  say("A person must answer before it runs.");
  return [
    () => (trouble.value ? h("p", { class: "error", role: "alert" }, prose(trouble.value)) : null),
    keyed(() => known.value, () => {
      if (!known.peek()) return null;
      /** @type {import("./contract.js").Card} */
      let last;
      const card = computed(() => (last = cards.all.value.get(id) ?? last));
      const { node, keys } = cardView(card);
      // The Inbox's keys, where the focus is in the card: elsewhere they are letters of the text.
      node.addEventListener("keydown", (event) => {
        const target = /** @type {HTMLElement} */ (event.target);
        if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || target.closest("input, textarea, select")) return;
        const action = keys[event.key];
        if (!action) return;
        event.preventDefault();
        action();
      });
      return h("div", { class: "question" }, node);
    }),
  ];
}
