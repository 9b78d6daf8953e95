// What the comparison found, in plain words. What was not reached is said as clearly as what was.

import {badge, byId, element, replace} from "./dom.js";
import {bytes, isNumber, joules, listed, seconds, times} from "./format.js";
import {comparable, comparison, ended, energyObtained, finalQuality, high, higherIsBetter, low, mean, metric, quality, qualityOf, reachedByAll, seedCount, strategies, target, task} from "./model.js";
import {colourOf} from "./theme.js";

function best(some, value, wanted = "least") {
  const known = some.filter((s) => isNumber(value(s)));
  known.sort((a, b) => (wanted === "least" ? value(a) - value(b) : value(b) - value(a)));
  return known;
}
const name = (strategy) => element("b", {}, strategy.name);
const timeToTarget = (s) => mean(s.to_target_s);

function firstSentence(ranked) {
  const [first, second] = ranked;
  const parts = [
    name(first),
    ` reaches ${quality(target)} ${metric} first, after ${seconds(timeToTarget(first))}`
  ];
  if (!second) return [...parts, "; no other strategy reaches it in every seed."];
  const ratio = timeToTarget(second) / timeToTarget(first);
  if (ratio < 1.005) return [...parts, ", level with ", name(second), "."];
  const gain = ratio < 1.95 ? `${Math.round((1 - 1 / ratio) * 100)} % less time than ` :
                              `${times(ratio)} as fast as `;
  return [...parts, `: ${gain}`, name(second), ` (${seconds(timeToTarget(second))}).`];
}

function lead(ranked) {
  if (target === null) {
    const [top] = best(
        comparable(strategies.filter(ended)), finalQuality,
        higherIsBetter ? "most" : "least");
    return top ?
        [
          "No target was set. The best quality at the end has ", name(top),
          `: ${quality(finalQuality(top))} ${metric}.`
        ] :
        ["No strategy finished its runs."];
  }
  if (ranked.length) return firstSentence(ranked);
  return [`No strategy reaches the target of ${quality(target)} ${metric} in every seed.`];
}

function shortOfTarget() {
  const short = strategies.filter((s) => ended(s) && !reachedByAll(s));
  const partly = short.filter((s) => s.reached > 0), missed = short.filter((s) => !(s.reached > 0));
  const bestQuality = (s) => mean(qualityOf(s, "best"));
  const lines = partly.map(
      (s) => [name(s), ` reaches the target in ${s.reached} of ${seedCount(s)} seeds only.`]);
  const [closest] = best(missed, bestQuality, higherIsBetter ? "most" : "least");
  if (missed.length > 2 && closest)
    return [
      ...lines,
      [
        `${listed(missed.map((s) => s.name))} do not reach the target; the closest is `,
        name(closest), ` with ${quality(bestQuality(closest))}.`
      ]
    ];
  return [
    ...lines,
    ...missed.map(
        (s) => [name(s), ` does not reach the target; its best is ${quality(bestQuality(s))}.`])
  ];
}

function remarks(ranked) {
  const lines = [];
  const [first, second] = ranked;
  const last = ranked[ranked.length - 1];
  if (second && high(first.to_target_s) >= low(second.to_target_s))
    lines.push([
      "The seeds of ", name(first), " and ", name(second), " overlap: their order is not certain."
    ]);
  if (ranked.length > 2)
    lines.push([
      `The slowest that gets there, `, name(last), `, takes ${seconds(timeToTarget(last))}: `,
      `${times(timeToTarget(last) / timeToTarget(first))} as long.`
    ]);
  const apart = strategies.filter((s) => ended(s) && !comparable([s]).length);
  if (apart.length)
    lines.push([
      `${listed(apart.map((s) => s.name))}: ${apart[0].obtained} while the others are not, so `,
      "shown beside them and not ranked with them."
    ]);
  if (target !== null) lines.push(...shortOfTarget());
  for (const status of [...new Set(strategies.filter((s) => !ended(s)).map((s) => s.status))]) {
    const some = strategies.filter((s) => s.status === status);
    lines.push(
        [element("span", {class: "bad"}, `✕ ${status}: `), listed(some.map((s) => s.name)), "."]);
  }
  for (const s of strategies)
    for (const missing of s.missing || []) lines.push([name(s), `: ${missing}.`]);
  if ((comparison.definitions || {}).tasks) lines.push([comparison.definitions.tasks]);
  const MOST = 8;
  return lines.length <= MOST ? lines : [
    ...lines.slice(0, MOST),
    [`And ${lines.length - MOST} more remarks of this kind; see the table.`]
  ];
}

// `some` in order, of which the first is the best in `value`; others may share its place.
function tile(label, some, value, write, obtained, why) {
  const [strategy] = some;
  const level = some.filter((s) => value(s) === value(strategy)).length - 1;
  return element(
      "div", {class: "tile"}, element("span", {class: "tile-label"}, label),
      element("span", {class: "tile-value"}, strategy ? write(value(strategy)) : "none"),
      element(
          "span", {class: "tile-name"},
          strategy ? element("i", {class: "swatch", style: {"--c": colourOf(strategy)}}) : null,
          strategy ? strategy.name + (level ? ` and ${level} more` : "") : "no strategy qualifies",
          strategy ? badge(obtained(strategy)) : null),
      element("span", {class: "tile-why"}, why));
}

function tiles(ranked) {
  const among = target === null ? comparable(strategies.filter(ended)) : ranked;
  const scope = target === null ? "of those that finished" : "of those that reach the target";
  const obtained = (s) => s.obtained || "measured";
  const time = target === null ? (s) => mean(s.total_s) : timeToTarget;
  const sent = (s) => mean(s.bytes_total), energy = (s) => mean(s.energy_j);
  return [
    tile(
        target === null ? "Shortest run" : "First at the target", best(among, time), time, seconds,
        obtained, "mean over seeds"),
    tile(
        `Best final ${metric}`,
        best(
            comparable(strategies.filter(ended)), finalQuality, higherIsBetter ? "most" : "least"),
        finalQuality, quality, obtained, "of all that finished"),
    tile(
        "Fewest bytes", best(among.filter((s) => sent(s) > 0), sent), sent, bytes, obtained,
        `${scope}, more than one node`),
    tile("Least energy", best(among, energy), energy, joules, energyObtained, scope),
  ];
}

export function drawHeadline() {
  const ranked = best(comparable(strategies.filter(reachedByAll)), timeToTarget);
  const lines = remarks(ranked);
  replace(
      byId("headline"), element("p", {class: "verdict"}, lead(ranked)),
      lines.length ? element("ul", {class: "remarks"}, lines.map((l) => element("li", {}, l))) :
                     null,
      element("div", {class: "tiles"}, tiles(ranked)));
}

export function drawMasthead() {
  const {cluster = {}, name: title} = comparison;
  document.title = `${comparison.title || title || "Comparison"} · Tutti report`;
  replace(byId("title"), document.createTextNode(comparison.title || title || "Comparison"));
  const when = comparison.created ? new Date(comparison.created) : null;
  const date = when && !Number.isNaN(when.getTime()) ?
      when.toLocaleDateString(
          "en", {year: "numeric", month: "long", day: "numeric", timeZone: "UTC"}) :
      "";
  replace(byId("eyebrow"), document.createTextNode([
    "Comparison", comparison.title ? title : null, date
  ].filter(Boolean).join(" · ")));
  const facts = [
    ["Data", task.data],
    ["Model", task.model],
    ["Global batch", task.global_batch],
    ["Epochs", task.epochs],
    ["Target", target === null ? "none" : `${quality(target)} ${metric}`],
    ["Seeds", Array.isArray(task.seeds) ? task.seeds.join(", ") : task.seeds],
    ["Cluster", cluster.description || cluster.fabric],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "");
  replace(
      byId("facts"),
      facts.map(
          ([label, value]) => element(
              "li", {}, element("span", {}, label),
              ` ${typeof value === "object" ? JSON.stringify(value) : value}`)));
}
