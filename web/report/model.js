// The comparison, and which of its strategies are shown. Everything on the page reads from here.

import {byId} from "./dom.js";
import {digits, isNumber, listed, percent} from "./format.js";

export const comparison = JSON.parse(byId("comparison").textContent);
export const task = comparison.task || {};
export const strategies = comparison.strategies.map((strategy, index) => ({...strategy, index}));
export const higherIsBetter = task.higher_is_better !== false;
export const metric = task.metric || "quality";
export const target = isNumber(task.target) ? task.target : null;

export const SHOWN_AT_FIRST = 12;
const listeners = [];

export const mean = (stat) => (stat && isNumber(stat.mean) ? stat.mean : null);
export const low = (stat) => (stat && isNumber(stat.min) ? stat.min : mean(stat));
export const high = (stat) => (stat && isNumber(stat.max) ? stat.max : mean(stat));
export const qualityOf = (strategy, which) => (strategy.quality ? strategy.quality[which] : null);
// Of the parameters that are kept, those of the end: on test samples, where it was measured there.
export const finalQuality = (strategy) =>
    ["test_final", "final", "validation_final", "best"]
        .map((which) => mean(qualityOf(strategy, which)))
        .find((value) => value !== null) ?? null;
export const seedCount = (strategy) => (strategy.seeds || []).length;
export const ended = (strategy) => strategy.status === "done";
export const broken = (strategy) => !ended(strategy);

// The target counts as reached when every seed reached it; some of them is said in words.
export function reachedByAll(strategy) {
  return ended(strategy) && strategy.reached > 0 && strategy.reached >= seedCount(strategy);
}

export function quality(value) {
  return metric === "accuracy" ? percent(value) : digits(value, 4);
}
export function define(key) {
  return (comparison.definitions && comparison.definitions[key]) || "";
}

// "measured", "simulated", or "measured and simulated" for what these strategies show together.
// Those whose figures were obtained as most were: a wall clock here and a simulated one elsewhere
// do not make a race.
export function comparable(some) {
  const count = (kind) => strategies.filter((s) => ended(s) && s.obtained === kind).length;
  const kinds = [...new Set(strategies.map((s) => s.obtained))];
  const [most] = kinds.sort((a, b) => count(b) - count(a));
  return some.filter((s) => s.obtained === most);
}

export function obtainedBy(some) {
  const kinds = [...new Set(some.map((s) => s.obtained).filter(Boolean))].sort();
  return listed(kinds) || "measured";
}
// Energy on a real machine is measured only where its counters are read.
export function energyObtained(strategy) {
  if (strategy.obtained === "simulated") return "simulated";
  return /rapl/i.test(strategy.energy_method || "") ? "measured" : "estimated";
}
export function energyObtainedBy(some) {
  const known = some.filter((s) => mean(s.energy_j) !== null);
  return listed([...new Set((known.length ? known : some).map(energyObtained))].sort());
}

// Figures such as time and energy are worth comparing among those that did the task: who reached
// the target, or who finished when nobody did.
export function candidates(some) {
  const alike = comparable(some);
  const able = target === null ? [] : alike.filter(reachedByAll);
  return able.length ? able : alike.filter(ended);
}

// First to the target first, then by quality, then what broke.
export function byMerit(a, b) {
  const place = (s) => (reachedByAll(s) ? 0 : ended(s) ? 1 : 2);
  const time = (s) => mean(s.to_target_s) ?? Infinity;
  const best = (s) => finalQuality(s) ?? (higherIsBetter ? -Infinity : Infinity);
  if (place(a) !== place(b)) return place(a) - place(b);
  if (place(a) === 0 && time(a) !== time(b)) return time(a) - time(b);
  if (best(a) === best(b)) return a.index - b.index;
  return higherIsBetter ? best(b) - best(a) : best(a) - best(b);
}

// Of many strategies only the first to the target are drawn at first; the others are a click away.
export const shown =
    new Set([...strategies].sort(byMerit).slice(0, SHOWN_AT_FIRST).map((s) => s.index));

export function visible() {
  return strategies.filter((s) => shown.has(s.index));
}
export function show(indices) {
  shown.clear();
  indices.forEach((index) => shown.add(index));
  changed();
}
export function flip(index) {
  if (!shown.delete(index)) shown.add(index);
  changed();
}
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
