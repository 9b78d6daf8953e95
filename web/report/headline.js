// What the comparison found, in plain words. What was not reached is said as clearly as what was.

import {badge, byId, element, replace} from "./dom.js";
import {bytes, isNumber, joules, listed, seconds, times} from "./format.js";
import {swatchOf} from "./looks.js";
import {baseline, clocks, clockShown, comparison, ended, energyObtained, field, finalQuality, high, higherIsBetter, isShown, low, mean, metric, quality, qualityOf, reachedByAll, seedCount, severalSeeds, strategies, target, task} from "./model.js";

function best(some, value, wanted = "least") {
  const known = some.filter((s) => isNumber(value(s)));
  known.sort((a, b) => (wanted === "least" ? value(a) - value(b) : value(b) - value(a)));
  return known;
}
const name = (strategy) => element("b", {}, strategy.name);
const timeToTarget = (s) => mean(s.to_target_s);
// With one seed there is no more to say than that the target was reached.
const inEverySeed = () => (severalSeeds() ? " in every seed" : "");

function firstSentence(ranked) {
  const [first, second] = ranked, alone = field().length < 2;
  const parts = [
    name(first),
    ` reaches ${quality(target)} ${metric} ${alone ? "" : "first, "}after ${
        seconds(timeToTarget(first))}`
  ];
  if (alone) return [...parts, "."];
  if (!second) return [...parts, `; no other strategy reaches it${inEverySeed()}.`];
  const ratio = timeToTarget(second) / timeToTarget(first);
  if (ratio < 1.005) return [...parts, ", level with ", name(second), "."];
  const gain = ratio < 1.95 ? `${Math.round((1 - 1 / ratio) * 100)} % less time than ` :
                              `${times(ratio)} as fast as `;
  return [...parts, `: ${gain}`, name(second), ` (${seconds(timeToTarget(second))}).`];
}

function lead(ranked) {
  if (target !== null)
    return ranked.length ?
        firstSentence(ranked) :
        [`No strategy reaches the target of ${quality(target)} ${metric}${inEverySeed()}.`];
  const some = field().filter(ended);
  if (!some.length) return ["No strategy finished its runs."];
  const [top] = best(some, finalQuality, higherIsBetter ? "most" : "least");
  if (top)
    return [
      "No target was set. The best quality at the end has ", name(top),
      `: ${quality(finalQuality(top))} ${metric}.`
    ];
  const [quickest] = best(some, (s) => mean(s.total_s));
  return quickest ?
      [
        "Only costs were simulated. The shortest run has ", name(quickest),
        `: ${seconds(mean(quickest.total_s))}.`
      ] :
      ["Nothing was measured."];
}

function shortOfTarget() {
  const short = field().filter((s) => ended(s) && !reachedByAll(s));
  const partly = short.filter((s) => s.reached > 0), missed = short.filter((s) => !(s.reached > 0));
  const bestQuality = (s) => mean(qualityOf(s, "best"));
  const lines = partly.map(
      (s) => [name(s), ` reaches the target in ${s.reached} of ${seedCount(s)} seeds only.`]);
  const measured = missed.filter((s) => bestQuality(s) !== null);
  const [closest] = best(measured, bestQuality, higherIsBetter ? "most" : "least");
  if (measured.length > 2)
    return [
      ...lines,
      [
        `${listed(measured.map((s) => s.name))} do not reach the target; the closest is `,
        name(closest), ` with ${quality(bestQuality(closest))}.`
      ]
    ];
  return [
    ...lines,
    ...measured.map(
        (s) => [name(s), ` does not reach the target; its best is ${quality(bestQuality(s))}.`])
  ];
}

// What several nodes gain over one.
function againstBaseline(ranked) {
  const alone = baseline(), [first] = ranked;
  if (!alone || !first || ranked.length < 2 || !reachedByAll(alone)) return [];
  if (first === alone)
    return [
      ["No architecture of several nodes is faster here than the baseline, ", name(alone), "."]
    ];
  const ratio = timeToTarget(alone) / timeToTarget(first);
  return [[
    "The baseline, ", name(alone),
    ` on one node, takes ${seconds(timeToTarget(alone))}: ${times(ratio)} as long as the first.`
  ]];
}

function otherClocks() {
  return clocks.filter((clock) => clock !== clockShown()).map((clock) => {
    const some = strategies.filter((s) => s.clock === clock);
    const names = listed(some.map((s) => s.name)), verb = some.length === 1 ? "was" : "were";
    return [
      `${names} ${verb} ${clock}. The page shows that apart, because the clocks are different: `,
      "choose the figures below."
    ];
  });
}

function remarks(ranked) {
  const lines = againstBaseline(ranked);
  const [first, second] = ranked;
  const last = ranked[ranked.length - 1];
  if (second && severalSeeds() && high(first.to_target_s) >= low(second.to_target_s))
    lines.push([
      "The seeds of ", name(first), " and ", name(second), " overlap: their order is not certain."
    ]);
  if (ranked.length > 2 && last !== baseline())
    lines.push([
      `The slowest that gets there, `, name(last), `, takes ${seconds(timeToTarget(last))}: `,
      `${times(timeToTarget(last) / timeToTarget(first))} as long.`
    ]);
  lines.push(...otherClocks());
  if (target !== null) lines.push(...shortOfTarget());
  const failures = field().filter((s) => !ended(s));
  for (const status of [...new Set(failures.map((s) => s.status))]) {
    const some = failures.filter((s) => s.status === status);
    lines.push(
        [element("span", {class: "bad"}, `✕ ${status}: `), listed(some.map((s) => s.name)), "."]);
  }
  for (const s of field())
    for (const missing of s.missing || []) lines.push([name(s), `: ${missing}.`]);
  if ((comparison.definitions || {}).tasks) lines.push([comparison.definitions.tasks]);
  const MOST = 8;
  return lines.length <= MOST ? lines : [
    ...lines.slice(0, MOST),
    [`And ${lines.length - MOST} more remarks of this kind; see the table.`]
  ];
}

// `some` in order, of which the first is the best in `value`; others may share its place. There is
// no tile where nobody has a value.
function tile(label, some, value, write, obtained, why) {
  const [strategy] = some;
  if (!strategy) return null;
  const level = some.filter((s) => value(s) === value(strategy)).length - 1;
  return element(
      "div", {class: "tile"}, element("span", {class: "tile-label"}, label),
      element("span", {class: "tile-value"}, write(value(strategy))),
      element(
          "span", {class: "tile-name"},
          element(
              "span", {class: "name"}, isShown(strategy) ? swatchOf(strategy) : null,
              strategy.name + (level ? ` and ${level} more` : "")),
          badge(obtained(strategy))),
      why ? element("span", {class: "tile-why"}, why) : null);
}

function tiles(ranked) {
  const done = field().filter(ended), lone = field().length < 2;
  const among = target === null ? done : ranked;
  const scope = lone  ? "" :
      target === null ? "of those that finished" :
                        "of those that reach the target";
  const time = target === null ? (s) => mean(s.total_s) : timeToTarget;
  const sent = (s) => mean(s.bytes_total), energy = (s) => mean(s.energy_j);
  const word = (alone, first) => (lone ? alone : first);
  return [
    target === null ?
        tile(word("Training time", "Shortest run"), best(among, time), time, seconds, clockShown) :
        tile(
            word("Time to target", "First at the target"), best(among, time), time, seconds,
            clockShown, severalSeeds() ? "mean over seeds" : ""),
    tile(
        word(`Final ${metric}`, `Best final ${metric}`),
        best(done, finalQuality, higherIsBetter ? "most" : "least"), finalQuality, quality,
        clockShown, word("", "of all that finished")),
    tile(
        word("Bytes sent", "Fewest bytes"), best(among.filter((s) => sent(s) > 0), sent), sent,
        bytes, clockShown, word("", `${scope}, more than one node`)),
    tile(
        word("Energy", "Least energy"), best(among, energy), energy, joules, energyObtained, scope),
  ];
}

export function drawHeadline() {
  const ranked = best(field().filter(reachedByAll), timeToTarget);
  const lines = remarks(ranked);
  replace(
      byId("headline"), element("p", {class: "verdict"}, lead(ranked)),
      lines.length ? element("ul", {class: "remarks"}, lines.map((l) => element("li", {}, l))) :
                     null,
      element("div", {class: "tiles"}, tiles(ranked).filter(Boolean)));
}

export function drawMasthead() {
  const {cluster = {}, name: job, question, title} = comparison;
  document.title = `${title || job || "Comparison"} · Tutti report`;
  replace(byId("title"), document.createTextNode(question || title || job || "Comparison"));
  const when = comparison.created ? new Date(comparison.created) : null;
  const date = when && !Number.isNaN(when.getTime()) ?
      when.toLocaleDateString(
          "en", {year: "numeric", month: "long", day: "numeric", timeZone: "UTC"}) :
      "";
  replace(
      byId("eyebrow"),
      document.createTextNode(["Comparison", job, date].filter(Boolean).join(" · ")));
  const seeds = Array.isArray(task.seeds) ? task.seeds : [];
  const facts = [
    ["Data", task.data],
    ["Model", task.model],
    ["Global batch", task.global_batch],
    ["Epochs", task.epochs],
    ["Target", target === null ? "none" : `${quality(target)} ${metric}`],
    [seeds.length === 1 ? "Seed" : "Seeds", seeds.join(", ")],
    ["Cluster", cluster.description || cluster.fabric],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "");
  replace(
      byId("facts"),
      facts.map(
          ([label, value]) => element(
              "li", {}, element("span", {}, label),
              ` ${typeof value === "object" ? JSON.stringify(value) : value}`)));
}
