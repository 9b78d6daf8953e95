// The columns of the result table: where a figure comes from, how it is written, which end is best.

import {bytes, count, digits, grams, joules, kilowattHours, percent, seconds} from "./format.js";
import {
  clockShown,
  energyObtainedBy,
  higherIsBetter,
  metric,
  quality,
  qualityOf,
  strategies
} from "./model.js";

const plain = (value) =>
    (value === null || value === undefined ? null : {mean: value, min: value, max: value});
const stat = (key) => (strategy) => strategy[key];
const tunedSetting = strategies.map((s) => s.tuning && s.tuning.setting).find(Boolean);
const better = higherIsBetter ? "most" : "least";

// [key, heading, statistic, format, which is best, only in the long table, how it was obtained]
export const COLUMNS = [
  ["to_target_s", "Time to target", stat("to_target_s"), seconds, "least", false],
  ["final", `Final ${metric}, test`, (s) => qualityOf(s, "final"), quality, better, false],
  [
    "validation_final", `Final ${metric}, validation`, (s) => qualityOf(s, "validation_final"),
    quality, better, false
  ],
  ["best", `Best ${metric}, validation`, (s) => qualityOf(s, "best"), quality, better, true],
  ["total_s", "Total time", stat("total_s"), seconds, "least", false],
  ["bytes_total", "Bytes sent", stat("bytes_total"), bytes, "least", false],
  ["energy_j", "Energy", stat("energy_j"), joules, "least", false, energyObtainedBy],
  ["scaling", "Scaling efficiency", (s) => plain(s.scaling_efficiency), percent, "most", false],
  [
    "tuning", tunedSetting ? `Own best ${tunedSetting}` : "Own best setting",
    (s) => plain(s.tuning && s.tuning.value), (v) => digits(v), null, false,
    (some) => some.some((s) => s.tuning && s.tuning.at_edge) ?
        `at an end of the range: ${
            some.filter((s) => s.tuning && s.tuning.at_edge).map((s) => s.name).join(", ")}` :
        "inside the range"
  ],
  [
    "tuning_s", "Search, time", (s) => plain(s.tuning && s.tuning.total_s), seconds, "least", true
  ],
  [
    "tuning_j", "Search, energy", (s) => plain(s.tuning && s.tuning.energy_j), joules, "least",
    true, energyObtainedBy
  ],
  [
    "staleness", "Staleness",
    (s) => s.staleness && {mean: s.staleness.mean, min: null, max: s.staleness.max},
    (v) => digits(v), null, false
  ],
  [
    "to_target_normalised_s", "Time to target, normalised", stat("to_target_normalised_s"), seconds,
    "least", true
  ],
  ["steps_to_target", "Steps to target", stat("steps_to_target"), count, "least", true],
  ["samples_to_target", "Samples to target", stat("samples_to_target"), count, "least", true],
  [
    "at_equal_samples", `${metric} at equal samples`, (s) => qualityOf(s, "at_equal_samples"),
    quality, better, true
  ],
  [
    "at_equal_time", `${metric} at equal time`, (s) => qualityOf(s, "at_equal_time"), quality,
    better, true
  ],
  ["converged_s", "Time to convergence", stat("converged_s"), seconds, "least", true],
  ["converged_steps", "Steps to convergence", stat("converged_steps"), count, "least", true],
  [
    "total_normalised_s", "Total time, normalised", stat("total_normalised_s"), seconds, "least",
    true
  ],
  ["wall_s", "Wall-clock time", stat("wall_s"), seconds, "least", true, () => "measured"],
  ["cpu_s", "CPU time", stat("cpu_s"), seconds, "least", true],
  ["startup_s", "Start-up", stat("startup_s"), seconds, "least", true, () => "measured"],
  ["samples_per_s", "Samples per second", stat("samples_per_s"), count, "most", true],
  ["steps", "Steps", stat("steps"), count, null, true],
  ["bytes_per_node", "Bytes, largest node", stat("bytes_per_node"), bytes, "least", true],
  ["messages_total", "Messages", stat("messages_total"), count, "least", true],
  ["messages_per_node", "Messages, largest node", stat("messages_per_node"), count, "least", true],
  [
    "age", "Age of information",
    (s) => s.age_s && {mean: s.age_s.mean, min: null, max: s.age_s.max}, seconds, null, true
  ],
  ["update_order", "Order of updates", (s) => plain(s.update_order), (v) => digits(v), null, true],
  ["peak_memory_bytes", "Peak memory", stat("peak_memory_bytes"), bytes, "least", true],
  ["utilisation", "Utilisation", stat("utilisation"), percent, "most", true],
  ["kwh", "Energy with PUE", stat("kwh"), kilowattHours, "least", true, energyObtainedBy],
  ["co2e_g", "CO₂e", stat("co2e_g"), grams, "least", true, () => "estimated"],
  ["cost", "Cost", stat("cost"), (v) => digits(v), "least", true, () => "estimated"],
  [
    "spot_cost", "Cost at spot prices", stat("spot_cost"), (v) => digits(v), "least", true,
    () => "estimated"
  ],
].map(([key, heading, value, format, wanted, long, obtained]) => ({
        talk: /^(bytes|messages)_/.test(key),  // a node that is alone is not good at it
        key,
        heading,
        value,
        format,
        wanted,
        long,
        obtained: obtained || clockShown,
      }));

// What architectures are compared by; comparisons of older versions lack the last four.
export const TAXONOMY = [
  ["structure", "structure"],
  ["parallelism", "parallelism"],
  ["optimisation", "optimisation"],
  ["timing", "timing"],
  ["pattern", "pattern"],
  ["data", "data"],
  ["stragglers", "stragglers"],
  ["communication", "communication"],
  ["computation", "computation"],
];
export const GROUPINGS = [
  ["", "not grouped"],
  ...TAXONOMY,
  ["kind", "kind"],
  ["fabric", "fabric"],
];
export function groupOf(strategy, grouping) {
  return String((strategy.taxonomy || {})[grouping] || strategy[grouping] || "unknown");
}
