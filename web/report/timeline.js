// One step of a strategy, a lane per node: who computes, sends, waits. Drawn as SVG.

import {kindLegend} from "./bars.js";
import {byId, chooser, drawn, element, figure, replace, withTip} from "./dom.js";
import {listed, seconds} from "./format.js";
import {clockShown, visible} from "./model.js";
import {drawSoon, onChange, reveal} from "./page.js";

const MOST_NAMED = 32;
const timed = () => visible().filter((s) => (s.timeline || []).some((row) => row.intervals.length));
let chosen = null;

function span(strategy) {
  const all = strategy.timeline.flatMap((row) => row.intervals);
  let from = Infinity, to = -Infinity;
  all.forEach(([, begin, end]) => {
    from = Math.min(from, begin);
    to = Math.max(to, end);
  });
  return [from, to];
}

// Round steps of 1, 2 or 5, about as many as fit.
function ticks(length, most) {
  const rough = length / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  return Array.from({length: Math.floor(length / step + 1e-9) + 1}, (ignored, i) => i * step);
}

function lanes(strategy, width) {
  const [from, to] = span(strategy), length = to - from || 1;
  const rows = strategy.timeline, named = rows.length <= MOST_NAMED;
  const lane = rows.length <= 12 ? 26 :
      rows.length <= 24          ? 18 :
                                   11,
        left = named ? 92 : 56, top = 26;
  const x = (time) => left + ((time - from) / length) * (width - left - 8);
  const height = top + rows.length * lane + 8;
  const svg = drawn(
      "svg", {
        class: "timeline",
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `One step of ${strategy.name}: ${rows.length} nodes, ${
            seconds(length)}. The values are in the table below.`
      },
      drawn(
          "defs", {},
          drawn(
              "pattern", {
                id: "hatch",
                width: 6,
                height: 6,
                patternUnits: "userSpaceOnUse",
                patternTransform: "rotate(45)"
              },
              drawn("rect", {width: 6, height: 6, class: "hatch-back"}),
              drawn("rect", {width: 2, height: 6, class: "hatch-line"}))));
  for (const tick of ticks(length, Math.max(2, Math.floor((width - left) / 90))))
    svg.append(
        drawn(
            "line",
            {x1: x(from + tick), x2: x(from + tick), y1: top - 4, y2: height - 8, class: "rule"}),
        drawn(
            "text", {x: x(from + tick), y: top - 10, class: "tick", "text-anchor": "middle"},
            seconds(tick)));
  rows.forEach((row, i) => {
    const y = top + i * lane;
    if (named || i % 8 === 0)
      svg.append(drawn(
          "text", {
            x: left - 10,
            y: y + lane / 2,
            class: "lane",
            "text-anchor": "end",
            "dominant-baseline": "central"
          },
          named ? `${row.role === "worker" ? "node" : row.role} ${row.rank}` : String(row.rank)));
    row.intervals.forEach(
        ([kind, begin, end]) => svg.append(withTip(
            drawn("rect", {
              x: x(begin),
              y: y + 1.5,
              width: Math.max(0.6, x(end) - x(begin)),
              height: lane - 3,
              rx: lane > 12 ? 2 : 0,
              class: `kind-${kind}`,
            }),
            () =>
                [`${kind}: ${seconds(end - begin)}`, `${row.role} ${row.rank}`,
                 `from ${seconds(begin - from)} to ${seconds(end - from)}`])));
  });
  return svg;
}

function timelineTable() {
  const kinds = ["compute", "communicate", "aggregate", "wait", "other"];
  const strategy = timed().find((s) => s.index === chosen);
  return [
    ["Node", ...kinds],
    strategy ? strategy.timeline.map(
                   (row) =>
                       [`${row.role} ${row.rank}`,
                        ...kinds.map(
                            (kind) => seconds(row.intervals.filter((i) => i[0] === kind)
                                                  .reduce((a, i) => a + i[2] - i[1], 0)))]) :
               []
  ];
}

export function startTimeline() {
  const plot = element("div", {class: "drawing"}), controls = element("div", {class: "controls"});
  const made = figure({id: "timeline", title: "Timeline", plot, controls, values: timelineTable});
  byId("step-figures").append(made.node);
  function drawTimeline() {
    const some = timed();
    reveal(made.node, some.length > 0);
    if (!some.length) return;
    if (!some.some((s) => s.index === chosen))
      chosen = (some.find((s) => s.timeline.length > 1) || some[0]).index;
    const strategy = some.find((s) => s.index === chosen);
    replace(
        controls,
        chooser("Strategy", some.map((s) => [String(s.index), s.name]), String(chosen), (value) => {
          chosen = Number(value);
          drawTimeline();
          controls.querySelector("select").focus();
        }), kindLegend());
    replace(plot, lanes(strategy, Math.max(240, plot.clientWidth)));
    const {timeline_nodes: nodes, intervals} = strategy.thinned || {};
    const without = visible().filter((s) => !some.includes(s));
    made.describe({
      obtained: clockShown(),
      text: [
        "One step, from the first node's start to the last one's end.",
        nodes ? `The first ${strategy.timeline.length} of ${nodes} nodes are drawn.` : "",
        intervals ? "Intervals too short to be seen are joined: the joint one has the kind that " +
                "took most of its time." :
                    ""
      ].filter(Boolean)
                .join(" "),
      without: without.length ? `No timeline was kept of ${listed(without.map((s) => s.name))}.` :
                                "",
    });
  }
  const redraw = () => drawSoon(drawTimeline);
  onChange(redraw);
  new ResizeObserver(() => {
    const svg = plot.querySelector("svg");
    if (svg && Math.abs(svg.width.baseVal.value - plot.clientWidth) > 2) redraw();
  }).observe(plot);
  redraw();
}
