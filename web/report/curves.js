// Quality over time, samples and bytes, and the training loss.

import {bandOf} from "./bands.js";
import {axis, chartFigure, levelPlugin} from "./charts.js";
import {byId, element, replace, segmented} from "./dom.js";
import {bytes, count, digits, isNumber, listed, range, seconds, secondsUpTo} from "./format.js";
import {colourOf, dashOf, pointOf} from "./looks.js";
import {define, ended, field, higherIsBetter, metric, quality, seedCount, severalSeeds, target, visible} from "./model.js";
import {onChange} from "./page.js";
import {faded} from "./theme.js";

let logarithmic = false, raw = false;

const CURVES = [
  {
    id: "quality-time",
    title: `${metric} over time`,
    rows: "curves",
    x: "time_s",
    y: "quality",
    format: seconds,
    write: quality,
    axis: "time",
    text: () => `How good the model is after how much training time, evaluation included. ${
        define("time_to_target")}`
  },
  {
    id: "quality-samples",
    title: `${metric} over samples`,
    rows: "curves",
    x: "samples",
    y: "quality",
    format: count,
    write: quality,
    axis: "samples seen by all nodes",
    text: () => `How much is learned from the same number of samples, whatever the time it takes. ${
        define("equal_samples")}`
  },
  {
    id: "quality-bytes",
    title: `${metric} over bytes`,
    rows: "curves",
    x: "bytes",
    y: "quality",
    format: bytes,
    write: quality,
    axis: "bytes sent by all nodes",
    text: () => "What a byte on the network buys. A strategy that sends nothing has no line here."
  },
  {
    id: "loss-time",
    title: "Training loss over time",
    rows: "series",
    x: "time_s",
    y: "loss",
    format: seconds,
    write: (v) => digits(v),
    axis: "time",
    text: () => raw ?
        "The loss of the batches that were trained on, as it was at each step." :
        "The loss of the batches that were trained on, smoothed: a moving average over the last " +
            "tenth of the run's steps."
  },
];

const bands = new Map();
function bandFor(curve, strategy) {
  const smoothed = curve.y === "loss" && !raw;
  const key = `${curve.id} ${strategy.index} ${smoothed}`;
  if (!bands.has(key)) {
    let rows = strategy[curve.rows] || [];
    if (smoothed) rows = rows.map((row) => row.smooth || {});
    if (curve.x === "bytes") rows = rows.filter((row) => (row.bytes || []).some((b) => b > 0));
    bands.set(key, bandOf(rows, curve.x, curve.y, ended(strategy)));
  }
  return bands.get(key);
}

function datasetsOf(strategy, band, width) {
  const colour = colourOf(strategy);
  const edge = (of, fill) => ({
    data: band.map((p) => ({x: p.x, y: p[of]})),
    borderWidth: 0,
    pointRadius: 0,
    fill,
    backgroundColor: faded(colour, 0.16),
    order: 2,
    pointHitRadius: 0,
  });
  // Options per point would be looked up for each of them: the mark at the end is a line of its
  // own.
  const {x, mean: y} = band[band.length - 1];
  const end = {
    data: [{x, y}],
    showLine: false,
    borderColor: colour,
    backgroundColor: colour,
    pointBorderWidth: 2,
    order: 0,
    pointRadius: ended(strategy) ? 3.5 : 6,
    pointStyle: ended(strategy) ? pointOf(strategy) : "crossRot",
    pointHitRadius: 0,
  };
  const line = {
    strategy,
    label: strategy.name,
    data: band.map((p) => ({x: p.x, y: p.mean, band: p})),
    borderColor: colour,
    backgroundColor: colour,
    borderWidth: width,
    borderDash: dashOf(strategy),
    order: 1,
    pointRadius: 0,
    pointHoverRadius: 4,
    pointStyle: pointOf(strategy),
    pointBorderWidth: 2,
    pointHitRadius: 6,
  };
  return seedCount(strategy) > 1 ? [edge("low", false), edge("high", "-1"), line, end] :
                                   [line, end];
}

// Room for what is worth seeing: the highest peak of an exploding loss would flatten all others.
function yRange(curve, drawnBands) {
  if (curve.y !== "loss") return {};
  const firsts = drawnBands.map(([, band]) => band[0].high).filter(isNumber);
  const most = Math.max(...drawnBands.flatMap(([, band]) => band.map((p) => p.high)));
  const bound = 3 * Math.max(...firsts);
  return most > bound ? {max: bound} : {};
}

function content(curve, some) {
  const all = some.map((s) => [s, bandFor(curve, s)]);
  const drawnBands = all.filter(([, band]) => band.length);
  if (!drawnBands.length) return null;
  const furthest = Math.max(0, ...drawnBands.map(([, band]) => band[band.length - 1].x));
  const ticks = curve.x === "time_s" ? secondsUpTo(furthest) : curve.format;
  const log = logarithmic && curve.rows === "curves";
  const parts =
      drawnBands.map(([s, band]) => `${s.name} ends at ${curve.write(band[band.length - 1].mean)}`);
  return {
    data: {
      datasets:
          drawnBands.flatMap(([s, band]) => datasetsOf(s, band, curve.y === "loss" ? 1.25 : 2))
    },
    options: {
      parsing: false,
      interaction: {mode: "everyLine", intersect: false},
      scales: {
        x: axis(
            curve.axis, ticks,
            {type: log ? "logarithmic" : "linear", ...(log ? {} : {beginAtZero: true})}),
        y: axis("", (v) => curve.write(v), yRange(curve, drawnBands)),
      },
      plugins: {
        level: curve.y === "quality" ? {value: target, text: `target ${quality(target)}`} : {},
        tooltip: {
          itemSort: (a, b) =>
              (higherIsBetter && curve.y === "quality" ? b.raw.y - a.raw.y : a.raw.y - b.raw.y),
          callbacks: {
            title: (items) => (items.length ? `around ${curve.format(items[0].raw.x)}` : ""),
            label: (item) => {
              const {band} = item.raw;
              const spread = band.seeds > 1 ?
                  ` (${range(curve.write(band.low), curve.write(band.high))})` :
                  "";
              return ` ${item.dataset.label}: ${curve.write(band.mean)}${spread}`;
            },
          },
        },
      },
    },
    label: `${curve.title}. ${parts.join("; ")}.`,
    without: all.filter(([, band]) => !band.length && curve.x !== "bytes").map(([s]) => s),
  };
}

const TABLE_ROWS = 12;
function values(curve) {
  const rows = visible().flatMap((s) => {
    const band = bandFor(curve, s);
    const step = Math.max(1, Math.ceil(band.length / TABLE_ROWS));
    return band.filter((p, i) => i % step === 0 || i === band.length - 1)
        .map(
            (p) =>
                [s.name, curve.format(p.x), curve.write(p.mean), curve.write(p.low),
                 curve.write(p.high)]);
  });
  return severalSeeds() ? [["Strategy", curve.axis, "Mean", "Lowest", "Highest"], rows] :
                          [["Strategy", curve.axis, "Value"], rows.map((row) => row.slice(0, 3))];
}

// What all curves have in common, said once below them.
function curveRemarks() {
  const shared = visible().filter((s) => s.shared_curve_of);
  const seeds = Math.max(...field().map(seedCount));
  const broke = visible().some((s) => !ended(s));
  return [
    "Between two evaluations lines are straight.",
    severalSeeds() ? "A run that has ended keeps its last value." : "",
    broke ? "A cross marks where a broken run stopped." : "",
    ...[...new Set(shared.map((s) => s.shared_curve_of))].map((source) => {
      const names = listed(shared.filter((s) => s.shared_curve_of === source).map((s) => s.name));
      return `Computed once, because they are proven equal: ${names} with the curve of ${source}.`;
    }),
    seeds === 2 ? "With two seeds the band says little about chance." : "",
  ].filter(Boolean)
      .join(" ");
}

export function startCurves() {
  const figures = CURVES.map((curve) => chartFigure({
                               id: curve.id,
                               title: curve.title[0].toUpperCase() + curve.title.slice(1),
                               type: "line",
                               legend: true,
                               text: curve.text,
                               plugins: [levelPlugin],
                               content: (some) => content(curve, some),
                               values: () => values(curve),
                             }));
  const redraw = () => figures.forEach((each) => each.redraw());
  replace(
      byId("learning-controls"),
      segmented("Horizontal axis", [[false, "linear"], [true, "logarithmic"]], false, (value) => {
        logarithmic = value;
        redraw();
      }), segmented("Training loss", [[false, "smoothed"], [true, "raw"]], false, (value) => {
        raw = value;
        redraw();
      }));
  byId("learning-figures").append(...figures.map((each) => each.node));
  const note = element("p", {class: "note"});
  byId("learning-figures").after(note);
  const say = () => {
    byId("learning-lead").textContent = severalSeeds() ?
        "Lines are the mean over seeds; the band reaches from the lowest seed to the highest." :
        "How the model gets better with time, samples and bytes.";
    note.textContent = curveRemarks();
  };
  onChange(say);
  say();
}
