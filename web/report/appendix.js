// Definitions, the resolved job, versions and machines: what is needed to do it again.

import {byId, element, replace, valueTable} from "./dom.js";
import {bytes, isNumber} from "./format.js";
import {comparison, seedCount, strategies} from "./model.js";
import {tidySection} from "./page.js";

const TITLES = {
  co2e: "CO₂e",
  equal_samples: "Equal samples",
  equal_time: "Equal time",
  age: "Age of information",
  update_order: "Order of updates",
  normalised: "Normalised time",
  time_to_target: "Time to target"
};
const titled = (key) => TITLES[key] || key[0].toUpperCase() + key.slice(1).replaceAll("_", " ");

function pairsTable(title, object) {
  const rows = Object.entries(object || {})
                   .filter(([, value]) => value !== null && value !== "")
                   .map(
                       ([key, value]) =>
                           [key.replaceAll("_", " "),
                            /bytes/.test(key) && isNumber(value) ? bytes(value) :
                                typeof value === "object"        ? JSON.stringify(value) :
                                                                   value]);
  return rows.length ?
      element("div", {class: "card"}, element("h3", {}, title), valueTable(["", ""], rows)) :
      null;
}

const MOST_RUNS = 1000;
function runFolders() {
  const several = strategies.some((s) => seedCount(s) > 1);
  const runs = strategies.flatMap(
      (s) =>
          (s.runs ||
           []).map((run, i) => several ? [s.name, (s.seeds || [])[i] ?? "", run] : [s.name, run]));
  if (!runs.length) return null;
  const all = runs.length > MOST_RUNS ? `, the first ${MOST_RUNS} of them` : "";
  const details = element(
      "details", {class: "card"},
      element(
          "summary", {},
          runs.length === 1 ? "Folder of the run" : `Folders of the ${runs.length} runs${all}`));
  const fill = () => details.append(valueTable(
      several ? ["Strategy", "Seed", "Folder"] : ["Strategy", "Folder"], runs.slice(0, MOST_RUNS)));
  details.addEventListener("toggle", fill, {once: true});
  return details;
}

function thinnedText(points, kept) {
  return [
    `${kept.toLocaleString("en")} of ${points.toLocaleString("en")} points are in this page:`,
    "the first and the last of each series, and the lowest and the highest of every stretch",
    "between them. Tables and statistics are from all points.",
  ].join(" ");
}

export function startAppendix() {
  const {points, kept} = comparison.thinned || {};
  const definitions = [
    ...Object.entries(comparison.definitions || {}).map(([key, text]) => [titled(key), text]),
    [
      "Measured, simulated, estimated",
      "Measured: read from a clock or a counter of a real run. Simulated: from a run in" +
          " the virtual time of a simulated cluster, with real gradients unless said " +
          "otherwise. Estimated: computed from other figures by the method named."
    ],
    points > kept ? ["Thinned series", thinnedText(points, kept)] : null,
  ].filter(Boolean);
  replace(
      byId("definition-list"),
      definitions.map(
          ([title, text]) =>
              element("div", {}, element("dt", {}, title), element("dd", {}, String(text)))));
  replace(
      byId("appendix"),
      comparison.job ? element(
                           "div", {class: "card"}, element("h3", {}, "Resolved job"),
                           element("pre", {tabindex: "0"}, comparison.job)) :
                       null,
      element(
          "div", {class: "grid two"}, pairsTable("Versions", comparison.versions),
          pairsTable("Machine", comparison.machine),
          (comparison.sources || []).map((source) => pairsTable(`From ${source.path}`, {
                                           ...source.machine,
                                           ...source.versions
                                         }))),
      runFolders());
  tidySection(byId("job"));
  replace(
      byId("footer"),
      document.createTextNode(`Made by Tutti ${
          (comparison.versions || {}).tutti ||
          ""}. Charts by Chart.js ${Chart.version}. This file needs no network.`));
}
