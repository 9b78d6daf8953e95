// Time to target with its spread, and where the time went.

import {axis, chartFigure} from "./charts.js";
import {byId, element, segmented} from "./dom.js";
import {isNumber, percent, range, seconds, secondsUpTo} from "./format.js";
import {colourOf} from "./looks.js";
import {define, ended, high, low, mean, quality, qualityOf, reachedByAll, seedCount, severalSeeds, visible} from "./model.js";
import {cssColour, faded, hatched, kindColour} from "./theme.js";

const ROW = 34, FRAME = 64;

// What stands in place of a bar that there is none for.
function excuse(strategy) {
  if (!ended(strategy)) return `✕ ${strategy.status}`;
  const best = mean(qualityOf(strategy, "best"));
  return best === null ? "not reached" : `not reached (best ${quality(best)})`;
}

// Whiskers from the fastest to the slowest seed, a dot for each, words where there is no bar.
const spreadPlugin = {
  id: "spread",
  afterDatasetsDraw(chart) {
    const {ctx, scales: {x}, chartArea: area} = chart;
    ctx.save();
    chart.data.rows.forEach((strategy, i) => {
      const y = chart.scales.y.getPixelForValue(i);
      const stat = strategy.to_target_s;
      if (mean(stat) === null) {
        ctx.fillStyle = cssColour(ended(strategy) ? "muted" : "bad");
        ctx.font = "12px system-ui, sans-serif";
        ctx.textBaseline = "middle";
        ctx.fillText(excuse(strategy), area.left + 8, y);
        return;
      }
      if (seedCount(strategy) < 2) return;
      ctx.strokeStyle = cssColour("text");
      ctx.lineWidth = 1.25;
      ctx.beginPath();
      const from = x.getPixelForValue(low(stat)), to = x.getPixelForValue(high(stat));
      ctx.moveTo(from, y);
      ctx.lineTo(to, y);
      for (const end of [from, to]) {
        ctx.moveTo(end, y - 5);
        ctx.lineTo(end, y + 5);
      }
      ctx.stroke();
      ctx.fillStyle = cssColour("card");
      (stat.values || []).filter(isNumber).forEach((value) => {
        ctx.beginPath();
        ctx.arc(x.getPixelForValue(value), y, 2.6, 0, 7);
        ctx.fill();
        ctx.stroke();
      });
      if (!reachedByAll(strategy)) {
        ctx.fillStyle = cssColour("muted");
        ctx.font = "11px system-ui, sans-serif";
        ctx.textBaseline = "middle";
        ctx.textAlign = to > (area.left + area.right) / 2 ? "right" : "left";
        const note = `${strategy.reached} of ${seedCount(strategy)} seeds`;
        ctx.fillText(note, ctx.textAlign === "right" ? from - 8 : to + 8, y);
        ctx.textAlign = "left";
      }
    });
    ctx.restore();
  },
};

// The quickest first; those that missed after them, those that broke last.
function byTime(some) {
  const key = (s) => (ended(s) ? mean(s.to_target_s) ?? 1e300 : Infinity);
  return [...some].sort((a, b) => (key(a) === key(b) ? 0 : key(a) - key(b)));
}

// A name in lines that fit beside the bars, broken at its hyphens and nowhere else.
const WIDEST_LINE = 20;
function inLines(name) {
  const lines = [""];
  for (const part of name.split(/(?<=[-_ ])/)) {
    const last = lines.length - 1;
    if (lines[last] && lines[last].length + part.length > WIDEST_LINE)
      lines.push(part);
    else
      lines[last] += part;
  }
  return lines;
}
const names = (rows) => axis("", null, {
  grid: {display: false},
  ticks: {
    color: cssColour("text"),
    autoSkip: false,
    callback: (value, i) => (rows[i] ? inLines(rows[i].name) : "")
  },
});

function targetContent(some) {
  const rows = byTime(some);
  if (!rows.some((s) => mean(s.to_target_s) !== null)) return null;
  const spoken = rows.map(
      (s) =>
          `${s.name} ${mean(s.to_target_s) === null ? excuse(s) : seconds(mean(s.to_target_s))}`);
  return {
    data: {
      rows,
      labels: rows.map((s) => s.name),
      datasets: [{
        data: rows.map((s) => mean(s.to_target_s)),
        maxBarThickness: 18,
        borderRadius: 4,
        backgroundColor:
            rows.map((s) => (reachedByAll(s) ? colourOf(s) : faded(colourOf(s), 0.35))),
      }],
    },
    options: {
      indexAxis: "y",
      interaction: {mode: "index", axis: "y", intersect: false},
      scales: {
        x: axis(
            "time to target",
            secondsUpTo(Math.max(0, ...rows.map((s) => high(s.to_target_s) || 0))), {
              beginAtZero: true,
              suggestedMax: Math.max(0, ...rows.map((s) => high(s.to_target_s) || 0)) * 1.02 || 1
            }),
        y: names(rows),
      },
      plugins: {
        tooltip: {
          callbacks: {
            label: ({dataIndex}) => {
              const stat = rows[dataIndex].to_target_s;
              if (mean(stat) === null) return excuse(rows[dataIndex]);
              const seeds = seedCount(rows[dataIndex]);
              return ` ${seconds(mean(stat))}${
                  seeds > 1 ? ` (${range(seconds(low(stat)), seconds(high(stat)))}), ${
                                  rows[dataIndex].reached} of ${seeds} seeds` :
                              ""}`;
            },
          }
        }
      },
    },
    height: FRAME + ROW * Math.max(2, rows.length),
    label: `Time to target. ${spoken.join("; ")}.`,
  };
}

const PARTS = [
  ["compute_s", "compute"], ["communicate_s", "communicate"], ["aggregate_s", "aggregate"],
  ["wait_s", "wait"], ["other_s", "other"]
];
let asShare = false;

const splitOf = (s) =>
    PARTS.map(([key]) => (s.time_split && isNumber(s.time_split[key]) ? s.time_split[key] : 0));
const sum = (values) => values.reduce((a, b) => a + b, 0);

function splitContent(some) {
  const known = some.filter((s) => sum(splitOf(s)) > 0);
  if (!known.length) return null;
  const rows = [...known].sort((a, b) => sum(splitOf(a)) - sum(splitOf(b)));
  const part = (s, k) => splitOf(s)[k] / (asShare ? sum(splitOf(s)) : 1);
  return {
    data: {
      rows,
      labels: rows.map((s) => s.name),
      datasets: PARTS.map(
          ([, name], k) => ({
            label: name,
            data: rows.map((s) => part(s, k)),
            backgroundColor: name === "wait" ? hatched(kindColour(name), cssColour("wait-line")) :
                                               kindColour(name),
            maxBarThickness: 18,
            stack: "time",
          })),
    },
    options: {
      indexAxis: "y",
      interaction: {mode: "index", axis: "y", intersect: false},
      scales: {
        x: axis(
            asShare ? "share of a node's time" : "mean time of a node",
            asShare ? percent : secondsUpTo(Math.max(0, ...rows.map((s) => sum(splitOf(s))))),
            {stacked: true, ...(asShare ? {max: 1} : {})}),
        y: {...names(rows), stacked: true},
      },
      plugins: {
        tooltip: {
          callbacks: {
            label: (item) => ` ${item.dataset.label}: ${
                seconds(splitOf(rows[item.dataIndex])[item.datasetIndex])}, ${
                percent(
                    splitOf(rows[item.dataIndex])[item.datasetIndex] /
                    sum(splitOf(rows[item.dataIndex])))}`,
          }
        }
      },
    },
    height: FRAME + ROW * Math.max(2, rows.length),
    label: `Time split. ${
        rows.map(
                (s) => `${s.name}: ${
                    PARTS.map(([, name], k) => `${name} ${seconds(splitOf(s)[k])}`).join(", ")}`)
            .join("; ")}.`,
    without: some.filter((s) => !known.includes(s)),
  };
}

export function kindLegend() {
  const words = {
    compute: "computes",
    communicate: "sends or receives",
    aggregate: "sums parameters",
    wait: "waits for others",
    other: "other"
  };
  return element(
      "ul", {class: "legend"},
      PARTS.map(
          ([, kind]) =>
              element("li", {}, element("i", {class: `swatch kind-${kind}`}), words[kind])));
}

function targetValues() {
  const rows = byTime(visible()).map(
      (s) =>
          [s.name, mean(s.to_target_s) === null ? excuse(s) : seconds(mean(s.to_target_s)),
           seconds(low(s.to_target_s)), seconds(high(s.to_target_s)),
           `${s.reached ?? 0} of ${seedCount(s)}`]);
  return severalSeeds() ? [["Strategy", "Mean", "Fastest", "Slowest", "Seeds at target"], rows] :
                          [["Strategy", "Time to target"], rows.map((row) => row.slice(0, 2))];
}

export function startBars() {
  const toTarget = chartFigure({
    id: "time-to-target",
    title: "Time to target",
    type: "bar",
    plugins: [spreadPlugin],
    text: () => `${
        severalSeeds() ?
            "Bars are means, dots are seeds, whiskers reach from the fastest seed to " +
                "the slowest. " :
            ""}${define("time_to_target")}`,
    content: targetContent,
    values: targetValues,
  });
  const split = chartFigure({
    id: "time-split",
    title: "Where the time goes",
    type: "bar",
    text: () => `The whole run of a node, mean over nodes${severalSeeds() ? " and seeds" : ""}: ` +
        "computing gradients, moving bytes, summing parameters, waiting for stragglers.",
    controls: element(
        "div", {class: "controls"}, kindLegend(),
        segmented(
            "Show", [[false, "seconds"], [true, "share"]], false,
            (value) => {
              asShare = value;
              split.redraw();
            })),
    content: splitContent,
    values: () => [
        ["Strategy", ...PARTS.map(([, name]) => name)],
        visible().map((s) => [s.name, ...splitOf(s).map((v) => seconds(v))])],
  });
  byId("time-figures").append(toTarget.node, split.node);
}
