// Energy against time, with the front of those that no other beats in both.

import { byId } from "./dom.js";
import { joules, seconds, secondsUpTo } from "./format.js";
import { strategies, visible, mean, ended, reachedByAll, target, define, energyObtainedBy } from "./model.js";
import { axis, chartFigure } from "./charts.js";
import { colourOf, cssColour, pointOf } from "./theme.js";

const at = (s) => ({ x: mean(s.total_s), y: mean(s.energy_j) });
const known = (s) => at(s).x !== null && at(s).y !== null;
const qualifies = (s) => (target === null ? ended(s) : reachedByAll(s));

// Strategies in order of time of which none is both slower and hungrier than another.
export function paretoFront(some) {
  const front = [];
  for (const s of [...some].sort((a, b) => at(a).x - at(b).x || at(a).y - at(b).y))
    if (!front.length || at(s).y < at(front[front.length - 1]).y) front.push(s);
  return front;
}

// Names beside the points; those on the front in bold.
const namesPlugin = {
  id: "names",
  afterDatasetsDraw(chart) {
    const { ctx, chartArea: area } = chart;
    const taken = [];
    ctx.save();
    chart.data.datasets.forEach((dataset, i) => {
      if (!dataset.strategy) return;
      const point = chart.getDatasetMeta(i).data[0];
      const text = dataset.strategy.name.slice(0, 24);
      ctx.font = `${dataset.onFront ? "600 " : ""}12px system-ui, sans-serif`;
      const width = ctx.measureText(text).width, left = point.x + 12 + width > area.right;
      const x = left ? point.x - 12 - width : point.x + 12;
      const clash = (y) => taken.some((t) => Math.abs(t.y - y) < 13 && x < t.x + t.width && t.x < x + width);
      let { y } = point;
      for (const shift of [0, -14, 14, -28, 28]) if (!clash(point.y + shift)) { y = point.y + shift; break; }
      if (clash(y)) return;
      taken.push({ x, y, width });
      ctx.fillStyle = cssColour(dataset.onFront ? "text" : "muted");
      ctx.textBaseline = "middle";
      ctx.fillText(text, x, y);
    });
    ctx.restore();
  },
};

// Logarithmic when one point would push the others into a corner; ticks at 1, 2 and 5 then.
function spreadAxis(title, format, values) {
  const least = Math.min(...values), most = Math.max(...values);
  if (!(least > 0 && most > 4 * least))
    return axis(title, title === "total time" ? secondsUpTo(most) : format, { beginAtZero: true, grace: "8%" });
  const round = (v) => /^[125]/.test(v.toExponential(3));
  return axis(`${title}, logarithmic`, (v) => (round(v) ? format(v) : ""),
    { type: "logarithmic", min: least / 1.5, max: most * 1.6 });
}

function paretoContent(some) {
  const points = some.filter(known), front = paretoFront(points.filter(qualifies));
  const datasets = points.map((s) => ({
    strategy: s, onFront: front.includes(s), label: s.name, data: [at(s)], pointStyle: pointOf(s), pointRadius: front.includes(s) ? 8 : 6,
    pointHoverRadius: 10, borderColor: colourOf(s), borderWidth: 2,
    backgroundColor: qualifies(s) ? colourOf(s) : "transparent",
  }));
  datasets.push({
    label: "Pareto front", data: front.map(at), showLine: true, pointRadius: 0, pointHitRadius: 0,
    borderColor: cssColour("text"), borderWidth: 1.5, borderDash: [4, 4], order: 9, stepped: false,
  });
  return {
    data: { datasets },
    options: {
      interaction: { mode: "nearest", intersect: true }, layout: { padding: { right: 12, top: 8 } },
      scales: {
        x: spreadAxis("total time", seconds, points.map((s) => at(s).x)),
        y: spreadAxis("energy", joules, points.map((s) => at(s).y)),
      },
      plugins: { tooltip: { filter: (item) => Boolean(item.dataset.strategy), callbacks: {
        label: ({ dataset: { strategy: s } }) => [` ${s.name}: ${joules(mean(s.energy_j))} in ${seconds(mean(s.total_s))}`,
          front.includes(s) ? "on the Pareto front" : qualifies(s) ? "another is better in both" : "did not reach the target"],
      } } },
    },
    label: `Energy against time. On the Pareto front: ${front.map((s) => s.name).join(", ") || "none"}. ${
      points.map((s) => `${s.name} ${joules(at(s).y)} in ${seconds(at(s).x)}`).join("; ")}.`,
    without: some.filter((s) => !known(s)),
  };
}

export function startPareto() {
  const made = chartFigure({
    id: "energy-time", title: "Energy against time", type: "scatter", obtained: energyObtainedBy(strategies),
    plugins: [namesPlugin], content: paretoContent,
    text: `Down and left is better. The dashed line joins the Pareto front: no other strategy is better in both. ${
      target === null ? "" : "Hollow points did not reach the target in every seed and do not count for it. "}${define("energy")}`,
    values: () => [["Strategy", "Total time", "Energy", "On the front"], visible().filter(known).map((s) =>
      [s.name, seconds(at(s).x), joules(at(s).y), paretoFront(visible().filter(known).filter(qualifies)).includes(s) ? "yes" : "no"])],
  });
  byId("energy-figures").append(made.node);
  made.draw();
}
