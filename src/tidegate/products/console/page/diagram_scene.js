/**
 * The drawing of a diagram: what is in sight alone, a part in each frame, names alone when it is small.
 * It knows no server and keeps nothing; `diagram.js` does.
 */

import { boundsOf, HEAD, LETTER, LINE, pathOf } from "./diagram_model.js";
import { h } from "./dom.js";
import { onEnd } from "./signals.js";

/** @typedef {import("./diagram_contract.js").Model} Model */
/** @typedef {import("./diagram_contract.js").Spot} Spot */
/** @typedef {{ node: SVGElement, key: string }} Drawn */

const SPACE = "http://www.w3.org/2000/svg";
/** The most nodes of the drawing; the rest of the page has some hundreds. */
const MOST_NODES = 2_000;
const FRAME_MS = 7;
const [LEAST_SCALE, MOST_SCALE, LEAST_DETAIL] = [0.03, 2.5, 0.45];
const MARGIN = 80;
const [READABLE, BIGGEST, LEAST_SEEN] = [12, 120, 3.5];
const START_DRAG = 4;

/** @param {string} tag @param {Record<string, string | number>} attributes @param {string} [text] */
function shape(tag, attributes, text) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}

export class Scene {
  /** @type {Model} */
  #model = { boxes: [], wires: [] };
  /** @type {Spot[]} */
  #spots = [];
  #chosen = -1;
  /** @type {ReadonlySet<number>} */
  #found = new Set();
  #view = { x: 0, y: 0, scale: 1 };
  /** @type {Map<number, Drawn>} */
  #boxes = new Map();
  /** @type {Map<number, Drawn>} */
  #wires = new Map();
  #frame = 0;
  /** @type {Map<number, { x: number, y: number }>} */
  #pointers = new Map();
  /** @type {{ index: number, from: Spot, x: number, y: number, moved: boolean } | null} */
  #drag = null;
  #on;

  /** @param {{ choose: (index: number) => void, open: (index: number) => void, moved: (index: number, spot: Spot) => void }} on */
  constructor(on) {
    this.#on = on;
    this.lines = shape("g", { class: "wires" });
    this.tables = shape("g", { class: "boxes" });
    this.whole = shape("g", {});
    this.whole.append(this.lines, this.tables);
    this.svg = shape("svg", { class: "scene", "aria-hidden": "true", focusable: "false" });
    this.svg.append(this.whole);
    this.node = h("div", { class: "scene-place" });
    this.node.append(this.svg);
    this.#listen();
    const size = new ResizeObserver(() => this.draw());
    size.observe(this.node);
    onEnd(() => {
      size.disconnect();
      cancelAnimationFrame(this.#frame);
    });
  }

  /** Show other tables, or others' places. @param {Model} model @param {Spot[]} spots */
  show(model, spots) {
    if (model !== this.#model) {
      for (const [, { node }] of [...this.#boxes, ...this.#wires]) node.remove();
      this.#boxes.clear();
      this.#wires.clear();
    }
    this.#model = model;
    this.#spots = spots;
    for (const [index, drawn] of this.#wires) drawn.node.setAttribute("d", pathOf(model, model.wires[index], spots));
    for (const [index, drawn] of this.#boxes) drawn.node.setAttribute("transform", `translate(${spots[index].join(" ")})`);
    this.draw();
  }

  /** @param {number} index of the chosen table, -1 for none @param {ReadonlySet<number>} found */
  mark(index, found) {
    this.#chosen = index;
    this.#found = found;
    for (const [at, { node }] of this.#boxes) this.#setMarks(at, node);
    for (const [at, { node }] of this.#wires) this.#setWire(at, node);
    this.draw();
  }

  get scale() {
    return this.#view.scale;
  }

  /** What is in sight, in the diagram's own measure. */
  get #sight() {
    const { x, y, scale } = this.#view;
    const { clientWidth, clientHeight } = this.node;
    return { left: x - MARGIN, top: y - MARGIN, right: x + clientWidth / scale + MARGIN, bottom: y + clientHeight / scale + MARGIN };
  }

  /** Show all of it. */
  fit() {
    const { left, top, right, bottom } = boundsOf(this.#model, this.#spots);
    const { clientWidth, clientHeight } = this.node;
    if (!clientWidth || !clientHeight) return;
    const scale = Math.min(1, (clientWidth - 32) / (right - left), (clientHeight - 32) / (bottom - top));
    this.#view.scale = Math.max(LEAST_SCALE, scale);
    this.#view.x = (left + right) / 2 - clientWidth / this.#view.scale / 2;
    this.#view.y = (top + bottom) / 2 - clientHeight / this.#view.scale / 2;
    this.draw();
  }

  /** Go nearer or further, around a point of the window. @param {number} by @param {number} [x] @param {number} [y] */
  zoom(by, x = this.node.clientWidth / 2, y = this.node.clientHeight / 2) {
    const view = this.#view;
    const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, view.scale * by));
    view.x += x / view.scale - x / scale;
    view.y += y / view.scale - y / scale;
    view.scale = scale;
    this.draw();
  }

  /** @param {number} dx in pixels of the window @param {number} dy */
  pan(dx, dy) {
    this.#view.x += dx / this.#view.scale;
    this.#view.y += dy / this.#view.scale;
    this.draw();
  }

  /** Bring a table into sight; `near` so that it can be read. @param {number} index @param {boolean} [near] */
  reveal(index, near = false) {
    const spot = this.#spots[index];
    if (!spot) return;
    if (near && this.#view.scale < LEAST_DETAIL) this.#view.scale = 0.8;
    const { w, h: height } = this.#model.boxes[index];
    const { clientWidth, clientHeight } = this.node;
    const [width, tall] = [clientWidth / this.#view.scale, clientHeight / this.#view.scale];
    const { x, y } = this.#view;
    const isSeen = spot[0] >= x && spot[0] + Math.min(w, width) <= x + width && spot[1] >= y && spot[1] + Math.min(height, tall) <= y + tall;
    if (!isSeen || near) {
      this.#view.x = spot[0] + w / 2 - width / 2;
      this.#view.y = spot[1] + Math.min(height, tall) / 2 - tall / 2;
    }
    this.draw();
  }

  draw() {
    this.node.dataset.drawn = "";
    this.#frame ||= requestAnimationFrame(() => this.#paint());
  }

  /** Draw as much as one frame allows, and the rest in the next ones. */
  #paint() {
    this.#frame = 0;
    const { x, y, scale } = this.#view;
    this.whole.setAttribute("transform", `scale(${scale}) translate(${-x} ${-y})`);
    const until = performance.now() + FRAME_MS;
    const more = this.#paintTables(until) || this.#paintWires(until);
    if (more) this.draw();
    if (!more && this.#model.boxes.length) this.node.dataset.drawn = "all";
  }

  /** @param {number} until @returns {boolean} whether there is more to do */
  #paintTables(until) {
    const { boxes } = this.#model;
    const { left, top, right, bottom } = this.#sight;
    const seen = boxes.flatMap(({ w, h: height }, index) => {
      const [x, y] = this.#spots[index];
      return x < right && x + w > left && y < bottom && y + height > top ? [index] : [];
    });
    const nodes = seen.reduce((sum, index) => sum + 4 + boxes[index].lines.length * 3, 0);
    const isNear = this.#view.scale >= LEAST_DETAIL && nodes <= MOST_NODES;
    // In steps, so that the names are not drawn again with every turn of the wheel.
    const size = Math.min(BIGGEST, Math.max(READABLE, Math.ceil(READABLE / this.#view.scale / 6) * 6));
    const least = LEAST_SEEN / this.#view.scale;
    const key = isNear ? "all" : `names ${size}`;
    const wanted = new Set(seen);
    for (const [index, { node }] of this.#boxes) {
      if (wanted.has(index)) continue;
      node.remove();
      this.#boxes.delete(index);
    }
    for (const index of seen) {
      const drawn = this.#boxes.get(index);
      if (drawn?.key === key) continue;
      if (performance.now() > until) return true;
      const node = isNear ? wholeTable(boxes[index]) : tableName(boxes[index], size, least);
      node.setAttribute("transform", `translate(${this.#spots[index].join(" ")})`);
      node.dataset.index = String(index);
      this.#setMarks(index, node);
      if (drawn) drawn.node.replaceWith(node);
      else this.tables.append(node);
      this.#boxes.set(index, { node, key });
    }
    return false;
  }

  /** @param {number} until */
  #paintWires(until) {
    const { boxes, wires } = this.#model;
    const { left, top, right, bottom } = this.#sight;
    for (let index = 0; index < wires.length; index += 1) {
      const { from, to } = wires[index];
      const [one, other] = [this.#spots[from], this.#spots[to]];
      const isSeen = Math.min(one[0], other[0]) - MARGIN < right && Math.max(one[0] + boxes[from].w, other[0] + boxes[to].w) + MARGIN > left &&
        Math.min(one[1], other[1]) < bottom && Math.max(one[1] + boxes[from].h, other[1] + boxes[to].h) > top;
      const drawn = this.#wires.get(index);
      if (drawn && !isSeen) {
        drawn.node.remove();
        this.#wires.delete(index);
      }
      if (drawn || !isSeen) continue;
      if (performance.now() > until) return true;
      const node = /** @type {SVGElement} */ (shape("path", { d: pathOf(this.#model, wires[index], this.#spots) }));
      this.#setWire(index, node);
      this.lines.append(node);
      this.#wires.set(index, { node, key: "" });
    }
    return false;
  }

  /** @param {number} index @param {SVGElement} node */
  #setMarks(index, node) {
    const marks = ["box", index === this.#chosen ? "chosen" : "", this.#found.has(index) ? "found" : ""];
    setClass(node, marks);
  }

  /** @param {number} index @param {SVGElement} node */
  #setWire(index, node) {
    const { from, to, facts } = this.#model.wires[index];
    const marks = ["wire", facts.guessed ? "guessed" : "", from === this.#chosen || to === this.#chosen ? "chosen" : ""];
    setClass(node, marks);
  }

  // Pointers: one moves a table or the whole, two go nearer

  #listen() {
    const { node } = this;
    node.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = node.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY * 0.006), event.clientX - box.left, event.clientY - box.top);
      else if (event.shiftKey) this.pan(event.deltaY || event.deltaX, 0);
      else this.pan(event.deltaX, event.deltaY);
    }, { passive: false });
    node.addEventListener("pointerdown", (event) => this.#press(event));
    node.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) {
      node.addEventListener(name, (event) => this.#release(event));
    }
    node.addEventListener("dblclick", (event) => {
      const index = indexAt(event.target);
      if (index >= 0) this.#on.open(index);
    });
  }

  /** @param {PointerEvent} event */
  #press(event) {
    if (event.button !== 0) return;
    const { clientX: x, clientY: y } = event;
    this.#pointers.set(event.pointerId, { x, y });
    this.node.setPointerCapture(event.pointerId);
    const index = indexAt(event.target);
    this.#drag = this.#pointers.size === 1 && index >= 0 ? { index, from: this.#spots[index], x, y, moved: false } : null;
    this.#on.choose(index);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    const { clientX: x, clientY: y } = event;
    const others = [...this.#pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.#pointers.set(event.pointerId, { x, y });
    const drag = this.#drag;
    if (others.length === 1) {
      const [other] = others;
      const box = this.node.getBoundingClientRect();
      const far = Math.hypot(x - other.x, y - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y));
      this.zoom(far, (x + other.x) / 2 - box.left, (y + other.y) / 2 - box.top);
    } else if (drag) {
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < START_DRAG) return;
      drag.moved = true;
      this.#place(drag.index, [Math.round(drag.from[0] + (x - drag.x) / this.scale), Math.round(drag.from[1] + (y - drag.y) / this.scale)]);
    } else this.pan(before.x - x, before.y - y);
  }

  /** @param {number} index @param {Spot} spot */
  #place(index, spot) {
    this.#spots = this.#spots.map((each, at) => (at === index ? spot : each));
    this.#boxes.get(index)?.node.setAttribute("transform", `translate(${spot.join(" ")})`);
    for (const [at, { node }] of this.#wires) {
      const wire = this.#model.wires[at];
      if (wire.from === index || wire.to === index) node.setAttribute("d", pathOf(this.#model, wire, this.#spots));
    }
  }

  /** @param {PointerEvent} event */
  #release(event) {
    this.#pointers.delete(event.pointerId);
    const drag = this.#drag;
    this.#drag = null;
    if (drag?.moved) this.#on.moved(drag.index, this.#spots[drag.index]);
  }
}

/** Only where it is another one: each that is set is looked at again. @param {SVGElement} node @param {string[]} marks */
function setClass(node, marks) {
  const text = marks.filter(Boolean).join(" ");
  if (node.getAttribute("class") !== text) node.setAttribute("class", text);
}

/** @param {EventTarget | null} target */
function indexAt(target) {
  const node = target instanceof Element ? target.closest("[data-index]") : null;
  return node instanceof SVGElement ? Number(node.dataset.index) : -1;
}

/** @param {import("./diagram_contract.js").Box} box */
function wholeTable({ title, lines, w, h: height }) {
  const node = shape("g", {});
  node.append(shape("rect", { class: "ground", width: w, height, rx: 6 }),
    shape("path", { class: "head", d: `M.5 ${HEAD}V6a5.5 5.5 0 0 1 5.5-5.5H${w - 6}a5.5 5.5 0 0 1 5.5 5.5V${HEAD}z` }),
    shape("text", { class: "name", x: 12, y: 18 }, title));
  lines.forEach(({ mark, name, type, masked }, at) => {
    const y = HEAD + at * LINE + 15;
    if (mark) node.append(shape("text", { class: "sign", x: 8, y }, mark));
    node.append(shape("text", { class: "column", x: 28, y }, name), shape("text", { class: "type", x: w - 8, y }, masked ? "masked" : type));
  });
  return /** @type {SVGElement} */ (node);
}

/** The name alone, as large as the table allows; none where no one could read it.
 * @param {import("./diagram_contract.js").Box} box @param {number} size @param {number} least */
function tableName({ title, w, h: height }, size, least) {
  const node = shape("g", {});
  const font = Math.min(size, height * 0.8, (w - 12) / [...title].length / LETTER * READABLE);
  node.append(shape("rect", { class: "ground far", width: w, height, rx: 6 }));
  if (font >= least) node.append(shape("text", { class: "name", x: 6, y: height / 2 + font * 0.35, "font-size": font }, title));
  return /** @type {SVGElement} */ (node);
}
