/** Arranges diagrams, off the page's thread. */

import * as dagre from "./dagre.esm.js";
import { arrange } from "./diagram_layout.js";

/** @typedef {import("./diagram_contract.js").LayoutTask} LayoutTask */

const fit = async () => (await import("./diagram_fit.js")).fitIn;

addEventListener("message", async (/** @type {MessageEvent<LayoutTask>} */ { data: { id, sizes, links, kept } }) => {
  const spots = kept.some((spot) => spot !== null) ? (await fit())(sizes, links, kept) : arrange(dagre, sizes, links);
  postMessage({ id, spots });
});
