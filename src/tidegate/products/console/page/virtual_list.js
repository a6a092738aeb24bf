/** A list of any length in rows of one height: only the rows in sight are nodes. */

import { h } from "./dom.js";
import { effect, onEnd, root, untracked } from "./signals.js";

const MARGIN = 12;

/** @param {{ label: string, rowHeight: number, count: () => number, keyOf: (index: number) => string,
 *   render: (index: number) => HTMLElement, onEndInSight: () => void }} options */
export function virtualList({ label, rowHeight, count, keyOf, render, onEndInSight }) {
  /** @type {Map<string, { node: HTMLElement, stop: () => void }>} */
  const kept = new Map();
  const list = h("ul", { class: "virtual", "aria-label": label });
  const box = h("div", { class: "virtual-box", tabindex: "0", role: "region", "aria-label": label,
    onscroll: () => draw() }, list);

  function draw() {
    const total = untracked(count);
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - MARGIN);
    const last = Math.min(total, Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + MARGIN);
    const seen = new Set();
    for (let index = first; index < last; index += 1) {
      const key = keyOf(index);
      seen.add(key);
      let entry = kept.get(key);
      if (!entry) {
        const [node, stop] = root(() => render(index));
        entry = { node, stop };
        kept.set(key, entry);
      }
      entry.node.style.top = `${index * rowHeight}px`;
      entry.node.setAttribute("aria-posinset", String(index + 1));
      entry.node.setAttribute("aria-setsize", String(total));
      // In the order of the list, also for those who read it without seeing it.
      const at = list.children[index - first];
      if (at !== entry.node) list.insertBefore(entry.node, at ?? null);
    }
    for (const [key, { node, stop }] of kept) {
      if (seen.has(key)) continue;
      node.remove();
      stop();
      kept.delete(key);
    }
    if (total && last >= total - MARGIN) onEndInSight();
  }

  const size = new ResizeObserver(draw);
  size.observe(box);
  effect(() => {
    list.style.height = `${count() * rowHeight}px`;
    draw();
  });
  onEnd(() => {
    size.disconnect();
    kept.forEach(({ stop }) => stop());
  });
  /** Bring a row into sight. @param {number} index */
  const reveal = (index) => {
    const top = index * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = top + rowHeight - box.clientHeight;
    }
  };
  return { box, reveal, toTop: () => (box.scrollTop = 0) };
}
