// How a strategy looks wherever it is drawn: a colour, a dash and a point. The first twelve places
// have colours of their own; beyond them colours come again with another dash, so that 48 lines can
// be told apart.

import {drawn} from "./dom.js";
import {placeOf} from "./model.js";
import {themeName} from "./theme.js";

// After Okabe and Ito. Each has a contrast of at least 3:1 with its background, and no two of one
// theme are closer than a distance of 23 in CIELAB, which is far beyond what eyes just notice.
const PALETTES = {
  light: [
    "#0072b2", "#d55e00", "#008f68", "#c0338a", "#8a6a00", "#0a97b8", "#6a3fc4", "#5f6b7a",
    "#b3202e", "#5f9a1d", "#123a7a", "#6e3b1c"
  ],
  dark: [
    "#4fa8e0", "#ff8a4c", "#2fc79a", "#ec9bc9", "#f2c531", "#a9e4ff", "#c39bff", "#a3adbb",
    "#ff5c72", "#a4e05a", "#6688ff", "#c9976b"
  ],
};
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
// No crosses: they mark what has failed.
const POINTS = ["circle", "rectRot", "triangle", "rect", "star", "rectRounded"];

export function paletteColour(place) {
  const palette = PALETTES[themeName()];
  return palette[place % palette.length];
}
export const colourOf = (strategy) => paletteColour(placeOf(strategy));
export function dashOf(strategy) {
  return DASHES[Math.floor(placeOf(strategy) / PALETTES.light.length) % DASHES.length];
}
export const pointOf = (strategy) => POINTS[placeOf(strategy) % POINTS.length];

const MARKS = {
  circle: (look) => drawn("circle", {cx: 15, cy: 6, r: 3.4, ...look}),
  rect: (look) => drawn("rect", {x: 12, y: 3, width: 6, height: 6, ...look}),
  rectRounded: (look) => drawn("rect", {x: 11.5, y: 2.5, width: 7, height: 7, rx: 2.5, ...look}),
  rectRot: (look) => drawn("path", {d: "M15 1.6 19.4 6 15 10.4 10.6 6Z", ...look}),
  triangle: (look) => drawn("path", {d: "M15 1.8 19 9.2H11Z", ...look}),
  star: (look) =>
      drawn("path", {d: "M15 1.6V10.4M10.6 6H19.4M11.9 2.9 18.1 9.1M18.1 2.9 11.9 9.1", ...look}),
};

// The line of a strategy as its charts draw it, with its point.
export function swatchOf(strategy) {
  const colour = colourOf(strategy);
  return drawn(
      "svg",
      {class: "swatch-line", width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true"},
      drawn("line", {
        x1: 1,
        x2: 29,
        y1: 6,
        y2: 6,
        stroke: colour,
        "stroke-width": 2,
        "stroke-dasharray": dashOf(strategy).join(" ") || null
      }),
      MARKS[pointOf(strategy)]({fill: colour, stroke: colour, "stroke-width": 1.4}));
}
