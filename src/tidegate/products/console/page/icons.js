/** Icons, drawn as lines in a square of 20. */

const PATHS = /** @type {const} */ ({
  inbox: "M3 11.5 5.2 4h9.6L17 11.5V16H3zM3 11.5h4l1 2h4l1-2h4",
  activity: "M3 5h14M3 10h14M3 15h9",
  access: "M10 3l6 2.2v4.3c0 3.6-2.5 6-6 7.5-3.5-1.5-6-3.9-6-7.5V5.2z",
  now: "M3 10h3l2-5 3 10 2.5-5H17",
  back: "M12 4l-6 6 6 6",
  close: "M5 5l10 10M15 5L5 15",
  search: "M9 4a5 5 0 100 10A5 5 0 009 4zM13 13l4 4",
  person: "M10 4a3 3 0 100 6 3 3 0 000-6zM4 17c.6-3.2 2.8-5 6-5s5.4 1.8 6 5",
  undo: "M7 5L3.5 8.5 7 12M4 8.5h8a4 4 0 010 8H9",
  clock: "M10 3a7 7 0 100 14 7 7 0 000-14zM10 6v4l3 2",
  warning: "M10 3l7.5 13h-15zM10 8v4M10 14v.5",
  check: "M4 10.5l4 4 8-9",
  chevron: "M7 4l6 6-6 6",
  data: "M3.5 5.5c0-1.4 2.9-2.5 6.5-2.5s6.5 1.1 6.5 2.5S13.6 8 10 8 3.5 6.9 3.5 5.5v9c0 1.4 2.9 2.5 6.5 2.5s6.5-1.1 6.5-2.5v-9M3.5 10c0 1.4 2.9 2.5 6.5 2.5s6.5-1.1 6.5-2.5",
  follow: "M5 15L15 5M8 5h7v7",
  mask: "M4 9h12v7H4zM7 9V6.5a3 3 0 016 0V9",
  add: "M10 4v12M4 10h12",
  agent: "M5 8h10v8H5zM10 8V4.5M8 12h.5M12 12h.5",
  table: "M3.5 4.5h13v11h-13zM3.5 8.5h13M8 8.5v7",
  view: "M3 10c2-3.4 4.3-5 7-5s5 1.6 7 5c-2 3.4-4.3 5-7 5s-5-1.6-7-5zM10 8.5a1.5 1.5 0 100 3 1.5 1.5 0 000-3",
  schema: "M3.5 5.5h5l1.5 2h6.5v8h-13z",
  filter: "M3.5 5h13L12 10.5V16l-4-2v-3.5z",
  refresh: "M15.5 7A6 6 0 104 12M15.5 3.5V7H12",
  copy: "M7 7h9v9H7zM4 13V4h9",
  save: "M10 3v9M6 8.5l4 4 4-4M4 16.5h12",
  import: "M10 12.5v-9M6 7l4-4 4 4M4 16.5h12",
  column: "M6 5h8M6 10h8M6 15h5",
  run: "M6 4l10 6-10 6z",
  minus: "M4 10h12",
  fit: "M4 8V4h4M12 4h4v4M16 12v4h-4M8 16H4v-4",
  arrange: "M3 4h5v4H3zM12 4h5v4h-5zM7.5 13h5v4h-5zM5.5 8v2.5h9V8M10 10.5V13",
  diagram: "M3 4h6v5H3zM11 11h6v5h-6zM9 6.5h5V11",
  server: "M4 4h12v5H4zM4 11h12v5H4zM7 6.5h.5M7 13.5h.5",
  terminal: "M3 4h14v12H3zM6 8l3 2.5L6 13M10.5 13H14",
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
