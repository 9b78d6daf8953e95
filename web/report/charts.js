// What all charts of Chart.js share: look, hover, the way they follow the switches.

import {element, figure, replace} from "./dom.js";
import {listed} from "./format.js";
import {swatchOf} from "./looks.js";
import {bestOnes, clockShown, visible} from "./model.js";
import {drawSoon, onChange, reveal} from "./page.js";
import {cssColour} from "./theme.js";

export const obtainedHere = () => clockShown();

// More lines or bars than this nobody can tell apart, and they take long to draw.
export const MOST_DRAWN = 40;

// For each line on the chart the point nearest to the pointer's x: all strategies at one moment.
Chart.Interaction.modes.everyLine = (chart, event) => {
  const items = [];
  chart.getSortedVisibleDatasetMetas().forEach((meta) => {
    if (!chart.data.datasets[meta.index].strategy || !meta.data.length) return;
    let nearest = 0;
    meta.data.forEach((point, i) => {
      if (Math.abs(point.x - event.x) < Math.abs(meta.data[nearest].x - event.x)) nearest = i;
    });
    items.push({element: meta.data[nearest], datasetIndex: meta.index, index: nearest});
  });
  return items;
};

// Where along the level its name covers the fewest points of the lines.
function freePlace(chart, y, width) {
  const {chartArea: area} = chart;
  const points = chart.getSortedVisibleDatasetMetas().flatMap((meta) => meta.data);
  let best = null;
  for (const base of [y - 6, y + 14])
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const x = area.left + 6 + share * (area.right - area.left - width - 12);
      const inside = base - 12 > area.top && base + 4 < area.bottom;
      const covered =
          points
              .filter(
                  (p) => p.x > x - 6 && p.x < x + width + 6 && p.y > base - 14 && p.y < base + 5)
              .length;
      if (inside && (!best || covered < best.covered)) best = {covered, at: [x, base]};
    }
  return best ? best.at : [area.left + 6, y + 14];
}

// A dashed level, such as the target.
export const levelPlugin = {
  id: "level",
  afterDatasetsDraw(chart, args, options) {
    const {value, text} = options;
    const scale = chart.scales.y;
    if (value === undefined || value === null || value < scale.min || value > scale.max) return;
    const {ctx, chartArea: area} = chart, y = scale.getPixelForValue(value);
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = cssColour("muted");
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(area.left, y);
    ctx.lineTo(area.right, y);
    ctx.stroke();
    ctx.font = "600 11px system-ui, sans-serif";
    ctx.setLineDash([]);
    ctx.lineWidth = 4;
    ctx.strokeStyle = cssColour("card");
    const at = freePlace(chart, y, ctx.measureText(text).width);
    ctx.strokeText(text, ...at);
    ctx.fillText(text, ...at);
    ctx.restore();
  },
};

// With `manyTicks` none is left out: their texts are empty where there would be too many.
export function axis(title, format, {manyTicks = false, ...extra} = {}) {
  return {
    title: {display: Boolean(title), text: title, color: cssColour("muted"), font: {size: 12}},
    grid: {color: cssColour("grid"), borderColor: cssColour("line"), tickColor: "transparent"},
    ticks: {
      color: cssColour("muted"),
      maxRotation: 0,
      autoSkipPadding: 14,
      autoSkip: !manyTicks,
      maxTicksLimit: manyTicks ? 40 : 7,
      ...(format ? {callback: (value) => format(value)} : {}),
    },
    ...extra,
  };
}

function look() {
  return {
    responsive: true,
    maintainAspectRatio: false,
    animation: false,
    normalized: true,
    plugins: {
      legend: {display: false},
      tooltip: {
        backgroundColor: cssColour("tip"),
        titleColor: cssColour("tip-text"),
        bodyColor: cssColour("tip-text"),
        padding: 10,
        cornerRadius: 8,
        boxPadding: 5,
        usePointStyle: true,
        titleFont: {weight: "600"},
      },
    },
  };
}

function merged(base, over) {
  const result = {...base};
  for (const [key, value] of Object.entries(over))
    result[key] = value && typeof value === "object" && !Array.isArray(value) && base[key] ?
        merged(base[key], value) :
        value;
  return result;
}

// A figure with a chart in it. `content(strategies)` gives {data, options, height?, label,
// without?} for the strategies shown, or null when there is nothing to draw: then the figure is
// hidden. label is the text for who cannot see it, without names those with nothing to draw. The
// chart is made anew on each change, which is quicker than it sounds and leaves no old state.
export function chartFigure(
    {type, content, obtained = obtainedHere, text, legend = false, plugins = [], ...of}) {
  const canvas = element("canvas", {role: "img", id: `${of.id}-chart`});
  const plot = element("div", {class: "plot"}, canvas);
  const made = figure({...of, plot});
  let chart = null;
  const draw = () => {
    const all = visible(), some = bestOnes(all, MOST_DRAWN);
    const drawing = content(some);
    if (chart) chart.destroy();
    chart = null;
    reveal(made.node, drawing !== null);
    if (!drawing) return;
    const {data, options, height, label, remark = "", without = []} = drawing;
    plot.style.height = height ? `${height}px` : "";
    canvas.setAttribute("aria-label", label);
    chart = new Chart(canvas, {type, data, options: merged(look(), options), plugins});
    const drawnOnes = data.datasets.map((d) => d.strategy).filter(Boolean);
    replace(
        made.legend, legend ? drawnOnes.map((s) => element("li", {}, swatchOf(s), s.name)) : []);
    made.describe({
      obtained: obtained(some),
      text: text(some),
      without: [
        all.length > some.length ? `The best ${some.length} of the ${all.length} shown are drawn.` :
                                   "",
        remark,
        without.length ?
            `Nothing to draw for ${listed(without.map((s) => `${s.name} (${s.status})`))}.` :
            "",
      ].filter(Boolean)
                   .join(" "),
    });
  };
  const redraw = () => drawSoon(draw);
  onChange(redraw);
  redraw();
  return {node: made.node, redraw};
}
