// What happens when: listeners hear of changes, pictures are drawn one after the other, and what
// has nothing to show takes no room.

import {byId} from "./dom.js";

const listeners = [];

export function onChange(listener) {
  listeners.push(listener);
}
export function changed() {
  listeners.forEach((listener) => listener());
}

// Figures are drawn one after the other, with room in between for who wants to scroll or type. The
// page says when it has nothing left to draw.
const waiting = new Set();
export function drawSoon(draw) {
  document.documentElement.dataset.ready = "false";
  if (!waiting.size) setTimeout(drawNext);
  waiting.add(draw);
}
function drawNext() {
  const [draw] = waiting;
  waiting.delete(draw);
  if (waiting.size) setTimeout(drawNext);  // even when this one fails
  if (draw) draw();
  if (waiting.size) return;
  document.documentElement.dataset.ready = "true";
  performance.mark("drawn");
}
// For paper, which does not wait.
export function drawAllNow() {
  while (waiting.size) drawNext();
}

// A figure that has nothing to show is hidden, and so is a section without figures together with
// its entry in the contents.
export function reveal(node, on) {
  node.hidden = !on;
  const section = node.closest("section");
  if (section) tidySection(section);
}
export function tidySection(section) {
  section.hidden = !section.querySelector(".card:not([hidden])");
  const entry = byId("contents").querySelector(`a[href="#${section.id}"]`);
  if (entry) entry.hidden = section.hidden;
}
