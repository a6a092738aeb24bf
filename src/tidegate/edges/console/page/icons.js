/** Icons, drawn as lines in a square of 20. */

const PATHS = /** @type {const} */ ({
  inbox: "M3 11.5 5.2 4h9.6L17 11.5V16H3zM3 11.5h4l1 2h4l1-2h4",
  activity: "M3 5h14M3 10h14M3 15h9",
  access: "M10 3l6 2.2v4.3c0 3.6-2.5 6-6 7.5-3.5-1.5-6-3.9-6-7.5V5.2z",
  back: "M12 4l-6 6 6 6",
  close: "M5 5l10 10M15 5L5 15",
  search: "M9 4a5 5 0 100 10A5 5 0 009 4zM13 13l4 4",
  person: "M10 4a3 3 0 100 6 3 3 0 000-6zM4 17c.6-3.2 2.8-5 6-5s5.4 1.8 6 5",
  undo: "M7 5L3.5 8.5 7 12M4 8.5h8a4 4 0 010 8H9",
  clock: "M10 3a7 7 0 100 14 7 7 0 000-14zM10 6v4l3 2",
  warning: "M10 3l7.5 13h-15zM10 8v4M10 14v.5",
  check: "M4 10.5l4 4 8-9",
  chevron: "M7 4l6 6-6 6",
  keys: "M3 5h14v10H3zM6 8h.5M10 8h.5M14 8h.5M6 12h8",
});

/** @param {keyof typeof PATHS} name */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  for (const [key, value] of Object.entries({
    viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true", focusable: "false",
  })) drawing.setAttribute(key, value);
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", PATHS[name]);
  drawing.append(path);
  return drawing;
}
