// Curves of several seeds as one: the mean, and the band from the lowest to the highest.

import {isNumber} from "./format.js";

export const MOST_POINTS_OF_A_BAND = 300;

// Points of one run in order of x, without those that are not known.
function pointsOf(columns, xKey, yKey) {
  const xs = columns[xKey] || [], ys = columns[yKey] || [], points = [];
  for (let i = 0; i < ys.length; i += 1)
    if (isNumber(xs[i]) && isNumber(ys[i])) points.push([xs[i], ys[i]]);
  return points.sort((a, b) => a[0] - b[0]);
}

// The value at x, by straight lines between points. `walk` remembers where the last one was found:
// x only grows. Nothing before the first point; after the last one its value when `hold`.
function valueAt(walk, x, hold) {
  const {points} = walk;
  if (x < points[0][0]) return null;
  while (walk.at + 1 < points.length && points[walk.at + 1][0] <= x) walk.at += 1;
  const here = points[walk.at], next = points[walk.at + 1];
  if (!next) return hold || x === here[0] ? here[1] : null;
  return here[1] + ((next[1] - here[1]) * (x - here[0])) / (next[0] - here[0] || 1);
}

// The first point, the last one, and of each stretch between them the point with the lowest low and
// the one with the highest high.
function thinned(whole, most) {
  if (whole.length <= most) return whole;
  const band = whole.slice(1, -1), kept = [whole[0]], stretches = Math.floor(most / 2) - 1;
  for (let i = 0; i < stretches; i += 1) {
    const from = Math.floor((band.length * i) / stretches);
    const to = Math.floor((band.length * (i + 1)) / stretches);
    let lowest = from, highest = from;
    for (let k = from; k < to; k += 1) {
      if (band[k].low < band[lowest].low) lowest = k;
      if (band[k].high > band[highest].high) highest = k;
    }
    kept.push(band[Math.min(lowest, highest)]);
    if (lowest !== highest) kept.push(band[Math.max(lowest, highest)]);
  }
  return [...kept, whole[whole.length - 1]];
}

// [{x, mean, low, high, seeds}]. A run that ended well keeps its last value (`hold`), so that a
// seed that stopped at the target does not make the mean of the others jump.
export function bandOf(runs, xKey, yKey, hold) {
  const walks = runs.map((run) => ({points: pointsOf(run, xKey, yKey), at: 0}))
                    .filter((walk) => walk.points.length > 0);
  const xs =
      [...new Set(walks.flatMap((walk) => walk.points.map((p) => p[0])))].sort((a, b) => a - b);
  const band = [];
  for (const x of xs) {
    let sum = 0, seeds = 0, lowest = Infinity, highest = -Infinity;
    for (const walk of walks) {
      const y = valueAt(walk, x, hold);
      if (y === null) continue;
      sum += y;
      seeds += 1;
      lowest = Math.min(lowest, y);
      highest = Math.max(highest, y);
    }
    if (seeds) band.push({x, mean: sum / seeds, low: lowest, high: highest, seeds});
  }
  return thinned(band, MOST_POINTS_OF_A_BAND);
}
