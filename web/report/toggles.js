// The switches of the page: which clock, and which strategies are shown in every figure at once.

import {byId, element, replace, segmented} from "./dom.js";
import {swatchOf} from "./looks.js";
import {baseline, broken, clocks, clockShown, field, flip, isBaseline, isShown, reachedByAll, show, showClock, target, visible} from "./model.js";
import {onChange} from "./page.js";

const FILTER_FROM = 16;
let filter = "";

// The chip of the baseline is no switch: it is always shown.
function chip(strategy) {
  const fixed = isBaseline(strategy);
  return element(
      fixed ? "span" : "button", {
        type: fixed ? null : "button",
        class: broken(strategy) ? "chip broken" : "chip",
        "aria-pressed": fixed ? null : String(isShown(strategy)),
        "data-index": strategy.index,
        title: strategy.status,
        onclick: fixed ? null : () => flip(strategy.index),
      },
      swatchOf(strategy), strategy.name, fixed ? element("small", {}, "baseline") : null,
      broken(strategy) ? element("span", {class: "bad"}, " ✕") : null);
}

function clockSwitch() {
  if (clocks.length < 2) return null;
  const names = clocks.map((clock) => [clock, clock[0].toUpperCase() + clock.slice(1)]);
  return segmented("Figures", names, clockShown(), showClock);
}

export function startToggles() {
  const chips = element("div", {class: "chips"});
  const action = (text, some) => element(
      "button", {
        type: "button",
        class: "quiet",
        onclick: () => show(some().map((s) => s.index)),
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
  const onlyBaseline = action("", () => []);
  const atTarget = action("At target", () => field().filter(reachedByAll));
  replace(
      byId("toggles"),
      element(
          "div", {class: "toggle-head"}, clockSwitch(),
          element("span", {class: "toggle-label"}, "Shown"), summary, action("All", field),
          onlyBaseline, atTarget, search),
      chips);
  function draw() {
    const focused = document.activeElement && document.activeElement.dataset.index;
    const all = field();
    byId("toggles").hidden = all.length < 2 && clocks.length < 2;
    onlyBaseline.textContent = baseline() ? "Baseline" : "None";
    atTarget.hidden = target === null || !all.some(reachedByAll);
    search.hidden = all.length < FILTER_FROM;
    const wanted = search.hidden ? "" : filter;
    replace(chips, all.filter((s) => s.name.toLowerCase().includes(wanted)).map(chip));
    replace(summary, document.createTextNode(`${visible().length} of ${all.length}`));
    // The buttons are made anew: the one that was pressed keeps the focus.
    if (focused !== undefined) chips.querySelector(`[data-index="${focused}"]`)?.focus();
  }
  onChange(draw);
  draw();
}
