// Which client of a federation holds which labels: one bar per client, as long as it has samples.

import {byId, chooser, drawn, element, figure, replace, withTip} from "./dom.js";
import {count, percent} from "./format.js";
import {paletteColour} from "./looks.js";
import {clockShown, strategies, visible} from "./model.js";
import {drawSoon, onChange, reveal, tidySection} from "./page.js";

const FIRST_LABEL = 2;  // columns before it are the client and its number of samples
const LABEL_COLOURS = 12;
const MOST_CLIENTS = 100;
let shownClients = null;

const federated = () => visible().filter((s) => s.clients && s.clients.rows.length);
const labelsOf = (table) => table.columns.slice(FIRST_LABEL);

// Labels beyond the twelfth repeat colours, paler.
function labelLook(label) {
  return {
    fill: paletteColour(label),
    "fill-opacity": [1, 0.55, 0.3][Math.min(2, Math.floor(label / LABEL_COLOURS))]
  };
}

function clientBars(strategy, width) {
  const {rows} = strategy.clients, labels = labelsOf(strategy.clients);
  const lane = rows.length <= 20 ? 22 : 9, left = 80, top = 6;
  const most = Math.max(1, ...rows.map((row) => row[1]));
  const scale = (width - left - 8) / most, height = top + rows.length * lane + 6;
  const svg = drawn("svg", {
    class: "timeline",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `Labels of ${rows.length} clients. The values are in the table below.`
  });
  rows.forEach((row, i) => {
    const y = top + i * lane;
    if (lane > 12 || i % 10 === 0)
      svg.append(drawn(
          "text", {
            x: left - 10,
            y: y + lane / 2,
            class: "lane",
            "text-anchor": "end",
            "dominant-baseline": "central"
          },
          `client ${row[0]}`));
    let x = left;
    const parts = labels.length ? row.slice(FIRST_LABEL) : [row[1]];
    parts.forEach((samples, label) => {
      if (!(samples > 0)) return;
      svg.append(withTip(
          drawn("rect", {
            x,
            y: y + 1,
            width: Math.max(0.5, samples * scale),
            height: lane - 2,
            ...labelLook(label)
          }),
          () =>
              [`${labels[label] ?? "samples"}: ${count(samples)}`, `client ${row[0]}`,
               `${percent(samples / row[1])} of its ${count(row[1])} samples`]));
      x += samples * scale;
    });
  });
  return svg;
}

function labelLegend(table) {
  return element("div", {class: "legend"}, labelsOf(table).map((label, i) => {
    const swatch = drawn(
        "svg", {width: 12, height: 12, "aria-hidden": "true"},
        drawn("rect", {width: 12, height: 12, rx: 2, ...labelLook(i)}));
    return element("span", {}, swatch, " ", label);
  }));
}

export function startClients() {
  if (!strategies.some((s) => s.clients)) return tidySection(byId("clients"));
  const plot = element("div", {class: "drawing"}), controls = element("div", {class: "controls"});
  const made = figure({
    id: "client-labels",
    title: "Labels of the clients",
    plot,
    controls,
    values: () => {
      const strategy = federated().find((s) => s.index === shownClients);
      return strategy ? [strategy.clients.columns, strategy.clients.rows] : [[], []];
    }
  });
  byId("client-figures").append(made.node);
  function drawClients() {
    const some = federated();
    reveal(made.node, some.length > 0);
    if (!some.length) return;
    if (!some.some((s) => s.index === shownClients)) shownClients = some[0].index;
    const strategy = some.find((s) => s.index === shownClients);
    replace(
        controls,
        chooser(
            "Strategy", some.map((s) => [String(s.index), s.name]), String(shownClients),
            (value) => {
              shownClients = Number(value);
              drawClients();
              controls.querySelector("select").focus();
            }),
        labelLegend(strategy.clients));
    replace(plot, clientBars(strategy, Math.max(240, plot.clientWidth)));
    made.describe({
      obtained: clockShown(),
      text: strategy.clients.rows.length >= MOST_CLIENTS ?
          `Of more than ${MOST_CLIENTS} clients, so many are drawn, evenly chosen.` :
          "",
    });
  }
  onChange(() => drawSoon(drawClients));
  drawSoon(drawClients);
}
