// How old the parameters were that gradients were computed with.

import {axis, chartFigure} from "./charts.js";
import {byId} from "./dom.js";
import {count, digits, listed, percent} from "./format.js";
import {colourOf} from "./looks.js";
import {define, visible} from "./model.js";

const MOST_BINS = 24;
const histogramOf = (s) => (s.staleness && s.staleness.histogram) || [];

const isStale = (s) => histogramOf(s).some((n, i) => i > 0 && n > 0);

// Shares of updates; what is beyond the last bin is summed up in it.
function shares(strategy, bins) {
  const histogram = histogramOf(strategy), total = histogram.reduce((a, b) => a + b, 0);
  return Array.from(
      {length: bins},
      (ignored, i) =>
          (i < bins - 1 ? histogram[i] || 0 : histogram.slice(i).reduce((a, b) => a + b, 0)) /
          (total || 1));
}

function stalenessContent(some) {
  const known = some.filter(isStale);
  if (!known.length) return null;
  const fresh = some.filter((s) => s.staleness && !isStale(s));
  const longest = Math.max(2, ...known.map((s) => histogramOf(s).length)),
        bins = Math.min(MOST_BINS, longest);
  const labels = Array.from(
      {length: bins}, (ignored, i) => (longest > bins && i === bins - 1 ? `${i}+` : String(i)));
  return {
    data: {
      labels,
      datasets: known.map((s) => ({
                            strategy: s,
                            label: s.name,
                            data: shares(s, bins),
                            backgroundColor: colourOf(s),
                            borderRadius: 2,
                            maxBarThickness: 22,
                          }))
    },
    options: {
      interaction: {mode: "index", intersect: false},
      scales: {
        x: axis("staleness in updates"),
        y: axis("share of updates", (v) => percent(v), {beginAtZero: true})
      },
      plugins: {
        tooltip: {
          filter: (item) => item.parsed.y > 0,
          callbacks: {
            title: (items) => (items.length ? `${items[0].label} updates late` : ""),
            label: (item) => ` ${item.dataset.label}: ${percent(item.parsed.y)}`
          },
        }
      },
    },
    label: `Staleness. ${
        known
            .map(
                (s) => `${s.name}: mean ${digits(s.staleness.mean)}, at most ${
                    digits(s.staleness.max)}`)
            .join("; ")}.`,
    remark: fresh.length ? `Never stale: ${listed(fresh.map((s) => s.name))}.` : "",
    without: some.filter((s) => !s.staleness),
  };
}

export function startStaleness() {
  const made = chartFigure({
    id: "staleness",
    title: "Staleness",
    type: "bar",
    legend: true,
    content: stalenessContent,
    text:
        () => ["How many updates came between reading the parameters and using a gradient of them;",
               "synchronous strategies have none.",
               define("staleness"),
  ].join(" "),
    values: () => [
        ["Strategy", "Mean", "Largest", "Updates counted"],
        visible()
            .filter((s) => s.staleness)
            .map(
                (s) =>
                    [s.name, digits(s.staleness.mean), digits(s.staleness.max),
                     count(histogramOf(s).reduce((a, b) => a + b, 0))])],
  });
  byId("energy-figures").append(made.node);
}
