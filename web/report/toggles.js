// One list of strategies that switches them on and off in every figure at once.

import {byId, element, replace} from "./dom.js";
import {broken, flip, onChange, reachedByAll, show, shown, strategies} from "./model.js";
import {colourOf, dashOf} from "./theme.js";

const FILTER_FROM = 16;
let filter = "";

export function swatchOf(strategy) {
  const dashed = dashOf(strategy).length > 0;
  return element(
      "i", {class: dashed ? "swatch dashed" : "swatch", style: {"--c": colourOf(strategy)}});
}

function chip(strategy) {
  const on = shown.has(strategy.index);
  return element(
      "button", {
        type: "button",
        class: broken(strategy) ? "chip broken" : "chip",
        "aria-pressed": String(on),
        "data-index": strategy.index,
        title: strategy.status,
        onclick: () => flip(strategy.index),
      },
      swatchOf(strategy), strategy.name,
      broken(strategy) ? element("span", {class: "bad"}, " ✕") : null);
}

export function startToggles() {
  const chips = element("div", {class: "chips"});
  const action = (text, indices) => element(
      "button", {
        type: "button",
        class: "quiet",
        onclick: () => show(indices().map((s) => s.index)),
      },
      text);
  const search = element("input", {
    type: "search",
    placeholder: "Find a strategy",
    "aria-label": "Find a strategy",
    oninput: (event) => {
      filter = event.target.value.toLowerCase();
      draw();
    },
  });
  const summary = element("span", {class: "shown-count", "aria-live": "polite"});
  replace(
      byId("toggles"),
      element(
          "div", {class: "toggle-head"}, element("span", {class: "toggle-label"}, "Shown"), summary,
          action("All", () => strategies), action("None", () => []),
          action("At target", () => strategies.filter(reachedByAll)),
          strategies.length >= FILTER_FROM ? search : null),
      chips);
  function draw() {
    const focused = document.activeElement && document.activeElement.dataset.index;
    const some = strategies.filter((s) => s.name.toLowerCase().includes(filter));
    replace(chips, some.map(chip));
    replace(summary, document.createTextNode(`${shown.size} of ${strategies.length}`));
    // The buttons are made anew: the one that was pressed keeps the focus.
    if (focused !== undefined) chips.querySelector(`[data-index="${focused}"]`)?.focus();
  }
  onChange(draw);
  draw();
}
