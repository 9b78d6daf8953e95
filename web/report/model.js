// The comparison, and which of its strategies are shown. Everything on the page reads from here.

import {byId} from "./dom.js";
import {digits, isNumber, listed, percent} from "./format.js";
import {changed} from "./page.js";

export const comparison = JSON.parse(byId("comparison").textContent);
export const task = comparison.task || {};
export const higherIsBetter = task.higher_is_better !== false;
export const metric = task.metric || "quality";
export const target = isNumber(task.target) ? task.target : null;

export const SHOWN_AT_FIRST = 12;

// A wall clock and a simulated one do not make a race: the page shows the strategies of one clock
// at a time. A run that failed early did not say which clock it had; its fabric does.
const clockOf = (s) =>
    s.obtained || (s.fabric && s.fabric !== "virtual" ? "measured" : "simulated");
export const strategies = comparison.strategies.map(
    (strategy, index) => ({...strategy, index, clock: clockOf(strategy)}));

export const mean = (stat) => (stat && isNumber(stat.mean) ? stat.mean : null);
export const low = (stat) => (stat && isNumber(stat.min) ? stat.min : mean(stat));
export const high = (stat) => (stat && isNumber(stat.max) ? stat.max : mean(stat));
export const qualityOf = (strategy, which) => (strategy.quality ? strategy.quality[which] : null);
// Of the parameters that are kept, those of the end: on test samples, where it was measured there.
export const finalQuality = (strategy) => ["test_final", "final", "validation_final", "best"]
                                              .map((which) => mean(qualityOf(strategy, which)))
                                              .find((value) => value !== null) ??
    null;
export const seedCount = (strategy) => (strategy.seeds || []).length;
export const ended = (strategy) => strategy.status === "done";
export const broken = (strategy) => !ended(strategy);

const members = (clock) => strategies.filter((s) => s.clock === clock);
export const clocks = [...new Set(strategies.map((s) => s.clock))].sort(
    (a, b) => members(b).filter(ended).length - members(a).filter(ended).length);
let clock = clocks[0];

// All strategies of the clock that is shown.
export const field = () => members(clock);
export const clockShown = () => clock;
export function showClock(chosen) {
  clock = chosen;
  changed();
}
// With one seed there is nothing to say about seeds.
export const severalSeeds = () => field().some((s) => seedCount(s) > 1);
// What all others are compared with is always shown: one node that trains alone.
const baselines = clocks.map((each) => members(each).find((s) => s.kind === "solo"));
export const baseline = () => baselines[clocks.indexOf(clock)];
export const isBaseline = (strategy) => baselines.includes(strategy);

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

// Energy on a real machine is measured only where its counters are read.
export function energyObtained(strategy) {
  if (strategy.clock === "simulated") return "simulated";
  return /rapl/i.test(strategy.energy_method || "") ? "measured" : "estimated";
}
export function energyObtainedBy(some) {
  const known = some.filter((s) => mean(s.energy_j) !== null);
  return listed([...new Set((known.length ? known : some).map(energyObtained))].sort());
}

// Figures such as time and energy are worth comparing among those that did the task: who reached
// the target, or who finished when nobody did.
export function candidates(some) {
  const able = target === null ? [] : some.filter(reachedByAll);
  return able.length ? able : some.filter(ended);
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

// The best `most` of them, the baseline among them, in the order they came in.
export function bestOnes(some, most) {
  if (some.length <= most) return some;
  const rank = (s) => (isBaseline(s) ? 0 : 1);
  const kept = new Set([...some].sort((a, b) => rank(a) - rank(b) || byMerit(a, b)).slice(0, most));
  return some.filter((s) => kept.has(s));
}

// Each strategy that is shown has a place of its own, which decides its colour: the lowest that is
// free when it comes, so that those already shown keep theirs.
const places = new Map();
export const placeOf = (strategy) => places.get(strategy.index) ?? strategy.index;
function put(indices) {
  for (const each of clocks) {
    const chosen = members(each).filter((s) => indices.has(s.index) || isBaseline(s));
    const kept = new Set(chosen.map((s) => s.index));
    members(each).filter((s) => !kept.has(s.index)).forEach((s) => places.delete(s.index));
    const taken = new Set(chosen.map((s) => places.get(s.index)));
    let free = 0;
    for (const s of chosen.filter((c) => !places.has(c.index)).sort(byMerit)) {
      while (taken.has(free)) free += 1;
      places.set(s.index, free);
      taken.add(free);
    }
  }
}
// Of many strategies only the first to the target are drawn at first; the others are a click away.
put(new Set(clocks.flatMap((each) => bestOnes(members(each), SHOWN_AT_FIRST)).map((s) => s.index)));

export const isShown = (strategy) => places.has(strategy.index);
export function visible() {
  return field().filter(isShown);
}
// Shows these of the clock that is shown, and no others of it.
export function show(indices) {
  const elsewhere = strategies.filter((s) => s.clock !== clock && isShown(s)).map((s) => s.index);
  put(new Set([...elsewhere, ...indices]));
  changed();
}
export function flip(index) {
  const now = new Set(visible().map((s) => s.index));
  if (!now.delete(index)) now.add(index);
  show(now);
}
