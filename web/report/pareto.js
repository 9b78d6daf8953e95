// Energy against time, with the front of those that no other beats in both.

import {axis, chartFigure} from "./charts.js";
import {byId} from "./dom.js";
import {joules, seconds, secondsUpTo} from "./format.js";
import {colourOf, pointOf} from "./looks.js";
import {define, ended, energyObtained, energyObtainedBy, mean, reachedByAll, severalSeeds, target, visible} from "./model.js";
import {cssColour} from "./theme.js";

const at = (s) => ({x: mean(s.total_s), y: mean(s.energy_j)});
// Energy that was read from counters and energy that was estimated are not compared: of machines
// that differ in that, those are drawn whose kind is the most frequent one.
function drawable(some) {
  const known = some.filter((s) => at(s).x !== null && at(s).y !== null);
  const count = (kind) => known.filter((s) => energyObtained(s) === kind).length;
  const [most] = [...new Set(known.map(energyObtained))].sort((a, b) => count(b) - count(a));
  return known.filter((s) => energyObtained(s) === most);
}
const qualifies = (s) => (target === null ? ended(s) : reachedByAll(s));

// Strategies in order of time of which none is both slower and hungrier than another.
export function paretoFront(some) {
  const front = [];
  for (const s of [...some].sort((a, b) => at(a).x - at(b).x || at(a).y - at(b).y))
    if (!front.length || at(s).y < at(front[front.length - 1]).y) front.push(s);
  return front;
}

// Names beside their points, where they cover neither points nor other names; those on the front in
// bold. A name that had to go further away gets a line to its point.
const namesPlugin = {
  id: "names",
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area} = chart, H = 14;
    const labelled =
        chart.data.datasets.map((dataset, i) => ({dataset, point: chart.getDatasetMeta(i).data[0]}))
            .filter(({dataset}) => dataset.strategy)
            .sort((a, b) => Number(b.dataset.onFront) - Number(a.dataset.onFront));
    const taken = labelled.map(({point: {x, y}}) => ({x: x - 9, y: y - 9, w: 18, h: 18}));
    const free = (box) => box.x >= area.left && box.x + box.w <= area.right + 8 &&
        box.y >= area.top - 8 && box.y + box.h <= area.bottom &&
        !taken.some(
            (t) => box.x < t.x + t.w && t.x < box.x + box.w && box.y < t.y + t.h &&
                t.y < box.y + box.h);
    ctx.save();
    labelled.forEach(({dataset: {strategy, onFront}, point: {x, y}}) => {
      const text = strategy.name;
      ctx.font = `${onFront ? "600 " : ""}12px system-ui, sans-serif`;
      const w = ctx.measureText(text).width + 4;
      const places = [0, 22, 40, 60].flatMap(
          (far) => [
              [12, -H / 2 - far], [12, -H / 2 + far], [-12 - w, -H / 2 - far],
              [-12 - w, -H / 2 + far], [-w / 2, -H - 8 - far], [-w / 2, 8 + far]]);
      const place = places.map(([dx, dy]) => ({x: x + dx, y: y + dy, w, h: H})).find(free);
      if (!place) return;
      taken.push(place);
      ctx.fillStyle = cssColour(onFront ? "text" : "muted");
      ctx.strokeStyle = cssColour("line");
      if (Math.abs(place.y + H / 2 - y) > 16) {
        ctx.beginPath();
        ctx.moveTo(x, y + Math.sign(place.y - y) * 8);
        ctx.lineTo(
            Math.min(Math.max(x, place.x), place.x + w), place.y > y ? place.y : place.y + H);
        ctx.stroke();
      }
      ctx.textBaseline = "middle";
      ctx.fillText(text, place.x + 2, place.y + H / 2);
    });
    ctx.restore();
  },
};

// Logarithmic when one point would push the others into a corner; ticks at 1, 2 and 5 then.
function spreadAxis(title, format, values) {
  const least = Math.min(...values), most = Math.max(...values);
  if (!(least > 0 && most > 4 * least))
    return axis(
        title, title === "total time" ? secondsUpTo(most) : format,
        {beginAtZero: true, grace: "8%"});
  const round = (v) => /^[125]/.test(v.toExponential(3));
  return axis(
      `${title}, logarithmic`, (v) => (round(v) ? format(v) : ""),
      {type: "logarithmic", min: least / 1.5, max: most * 1.6, manyTicks: true});
}

function paretoContent(some) {
  const points = drawable(some);
  if (points.length < 2) return null;  // one point is against nothing
  const front = paretoFront(points.filter(qualifies));
  const datasets = points.map((s) => ({
                                strategy: s,
                                onFront: front.includes(s),
                                label: s.name,
                                data: [at(s)],
                                pointStyle: pointOf(s),
                                pointRadius: front.includes(s) ? 8 : 6,
                                pointHoverRadius: 10,
                                borderColor: colourOf(s),
                                borderWidth: 2,
                                backgroundColor: qualifies(s) ? colourOf(s) : "transparent",
                              }));
  datasets.push({
    label: "Pareto front",
    data: front.map(at),
    showLine: true,
    pointRadius: 0,
    pointHitRadius: 0,
    borderColor: cssColour("text"),
    borderWidth: 1.5,
    borderDash: [4, 4],
    order: 9,
    stepped: false,
  });
  return {
    data: {datasets},
    options: {
      interaction: {mode: "nearest", intersect: true},
      layout: {padding: {right: 12, top: 8}},
      scales: {
        x: spreadAxis("total time", seconds, points.map((s) => at(s).x)),
        y: spreadAxis("energy", joules, points.map((s) => at(s).y)),
      },
      plugins: {
        tooltip: {
          filter: (item) => Boolean(item.dataset.strategy),
          callbacks: {
            label: ({dataset: {strategy: s}}) =>
                [` ${s.name}: ${joules(mean(s.energy_j))} in ${seconds(mean(s.total_s))}`,
                 front.includes(s) ? "on the Pareto front" :
                     qualifies(s)  ? "another is better in both" :
                                     "did not reach the target"],
          }
        }
      },
    },
    label: `Energy against time. On the Pareto front: ${
        front.map((s) => s.name).join(", ") || "none"}. ${
        points.map((s) => `${s.name} ${joules(at(s).y)} in ${seconds(at(s).x)}`).join("; ")}.`,
    without: some.filter((s) => !points.includes(s)),
  };
}

export function startPareto() {
  const made = chartFigure({
    id: "energy-time",
    title: "Energy against time",
    type: "scatter",
    legend: true,
    obtained: (some) => energyObtainedBy(drawable(some)),
    plugins: [namesPlugin],
    content: paretoContent,
    text: (some) => ["Down and left is better. The dashed line joins the Pareto front:",
                     "no other strategy is better in both.",
                     drawable(some).every(qualifies) ?
                         "" :
                         target === null ?
                         "Hollow points are runs that did not end well, and do not count for it." :
                         `Hollow points missed the target${
                             severalSeeds() ? " in some seed" : ""} and do not ` +
                             "count for it.",
                     define("energy"),
  ].join(" "),
    values: () => {
      const points = drawable(visible()), front = paretoFront(points.filter(qualifies));
      return [
        ["Strategy", "Total time", "Energy", "On the front"],
        points.map(
            (s) => [s.name, seconds(at(s).x), joules(at(s).y), front.includes(s) ? "yes" : "no"])
      ];
    },
  });
  byId("energy-figures").append(made.node);
}
