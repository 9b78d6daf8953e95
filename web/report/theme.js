// Light and dark, as the system says or as somebody chose.

import {byId, replace} from "./dom.js";
import {changed, drawAllNow} from "./page.js";

const KINDS = {
  light: {
    compute: "#0072b2",
    communicate: "#e08214",
    aggregate: "#7b4fb5",
    wait: "#c9ced6",
    other: "#8b94a1"
  },
  dark: {
    compute: "#4fa8e0",
    communicate: "#f0a34a",
    aggregate: "#b79bf0",
    wait: "#4a5463",
    other: "#7d8795"
  },
};
const CHOICES = ["auto", "light", "dark"];
const LABELS = {
  auto: "◐ Auto",
  light: "☀ Light",
  dark: "☾ Dark"
};
const system = window.matchMedia("(prefers-color-scheme: dark)");

let choice = remembered();
let printing = false;

function remembered() {
  try {
    const stored = localStorage.getItem("tutti-theme");
    return CHOICES.includes(stored) ? stored : "auto";
  } catch {
    return "auto";
  }  // a browser may forbid it to files
}

export function themeName() {
  if (printing) return "light";
  return choice === "auto" ? (system.matches ? "dark" : "light") : choice;
}
export function kindColour(kind) {
  return KINDS[themeName()][kind] || KINDS[themeName()].other;
}
// Hatched, as in the legend: waiting can be told from other kinds without its colour.
export function hatched(colour, lines) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = lines;
  pen.lineWidth = 1.6;
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
  }
  pen.stroke();
  return pen.createPattern(tile, "repeat");
}
export function faded(colour, share) {
  return colour + Math.round(share * 255).toString(16).padStart(2, "0");
}
export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function apply() {
  document.documentElement.dataset.theme = themeName();
  const button = byId("theme");
  replace(button, document.createTextNode(LABELS[choice]));
  button.setAttribute("aria-label", `Colours: ${choice}. Change`);
}

export function startTheme() {
  apply();
  byId("theme").addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    try {
      localStorage.setItem("tutti-theme", choice);
    } catch { /* not kept, then */
    }
    apply();
    changed();
  });
  system.addEventListener("change", () => {
    apply();
    changed();
  });
  const print = (on) => () => {
    printing = on;
    apply();
    changed();
    drawAllNow();
  };
  window.addEventListener("beforeprint", print(true));
  window.addEventListener("afterprint", print(false));
}
