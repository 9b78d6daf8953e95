// Each architecture as a picture: nodes on a circle, servers in the middle, lines as wide as what
// was sent over them. Drawn as SVG.

import {byId, drawn, element, figure, replace, withTip} from "./dom.js";
import {bytes, isNumber, listed, percent} from "./format.js";
import {colourOf} from "./looks.js";
import {clockShown, ended, visible} from "./model.js";
import {drawSoon, onChange, reveal} from "./page.js";

const SIZE = 240, CENTRE = SIZE / 2, CIRCLE = 94, WIDEST = 8, MOST_PICTURES = 24;

function placed(nodes) {
  const outer = nodes.map((n, i) => i).filter((i) => nodes[i].role === "worker");
  const inner = nodes.map((n, i) => i).filter((i) => nodes[i].role !== "worker");
  const places = [];
  const ring = (indices, radius) => indices.forEach((index, i) => {
    const angle = (i / indices.length) * 2 * Math.PI - Math.PI / 2;
    places[index] = [CENTRE + radius * Math.cos(angle), CENTRE + radius * Math.sin(angle)];
  });
  ring(outer, outer.length > 1 ? CIRCLE : 0);
  ring(inner, inner.length > 1 ? 14 + 3 * Math.min(8, inner.length) : 0);
  return places;
}

// Both directions of a link become one line.
function pairs(links) {
  const joined = new Map();
  for (const [from, to, amount] of links) {
    const [a, b] = from < to ? [from, to] : [to, from];
    const key = `${a} ${b}`;
    if (!joined.has(key)) joined.set(key, {a, b, there: 0, back: 0});
    joined.get(key)[from === a ? "there" : "back"] += amount;
  }
  return [...joined.values()].map((pair) => ({...pair, all: pair.there + pair.back}));
}

const nodeName = (node) =>
    (node.count > 1 ? `${node.role}s ${node.first} to ${node.last}` : `${node.role} ${node.first}`);

function line(pair, places, nodes, strategy, widest) {
  const width = Math.max(0.7, (WIDEST * pair.all) / widest);
  const lines =
      () => [`${bytes(pair.all)}`, ...(pair.a === pair.b ? [`within ${nodeName(nodes[pair.a])}`] : [
               `${nodeName(nodes[pair.a])} → ${nodeName(nodes[pair.b])}: ${bytes(pair.there)}`,
               `${nodeName(nodes[pair.b])} → ${nodeName(nodes[pair.a])}: ${bytes(pair.back)}`
             ])];
  const look = {class: "link", stroke: colourOf(strategy), "stroke-width": width};
  const [x1, y1] = places[pair.a], [x2, y2] = places[pair.b];
  if (pair.a === pair.b)
    return withTip(drawn("circle", {cx: x1, cy: y1, r: 11, fill: "none", ...look}), lines);
  // Bent towards the middle, so that a line does not run through the nodes between its ends.
  const far = Math.hypot(x2 - x1, y2 - y1) / (2 * CIRCLE),
        pull = nodes[pair.a].role === "worker" && nodes[pair.b].role === "worker" && far > 0.5 ?
      0.25 * far :
      0;
  const cx = ((x1 + x2) / 2) * (1 - pull) + CENTRE * pull,
        cy = ((y1 + y2) / 2) * (1 - pull) + CENTRE * pull;
  return withTip(
      drawn("path", {d: `M${x1} ${y1}Q${cx} ${cy} ${x2} ${y2}`, fill: "none", ...look}), lines);
}

function dot(node, [x, y], total) {
  const size = total <= 12 ? 11 : total <= 24 ? 8 : 4.5;
  const mark = node.role === "worker" ? drawn("circle", {cx: x, cy: y, r: size, class: "node"}) :
                                        drawn("rect", {
                                          x: x - size,
                                          y: y - size,
                                          width: 2 * size,
                                          height: 2 * size,
                                          rx: 3,
                                          class: "node server"
                                        });
  const text = total <= 24 && node.count === 1 ? drawn(
                                                     "text", {
                                                       x,
                                                       y,
                                                       class: "rank",
                                                       "text-anchor": "middle",
                                                       "dominant-baseline": "central",
                                                       "font-size": total <= 12 ? 11 : 8.5
                                                     },
                                                     String(node.first)) :
                                                 null;
  return withTip(
      drawn("g", {}, mark, ...(text ? [text] : [])),
      () => [nodeName(node), isNumber(node.bytes_sent) ? `sent ${bytes(node.bytes_sent)}` : null,
             isNumber(node.peak_memory_bytes) ? `memory at most ${bytes(node.peak_memory_bytes)}` :
                                                null,
             isNumber(node.utilisation) ? `utilisation ${percent(node.utilisation)}` : null]
                .filter(Boolean));
}

function picture(strategy, widest) {
  const {nodes, links, grouped} = strategy.network;
  const places = placed(nodes), joined = pairs(links);
  const total = joined.reduce((sum, pair) => sum + pair.all, 0);
  const most = Math.max(0, ...joined.map((pair) => pair.all));
  const count = nodes.reduce((sum, node) => sum + node.count, 0);
  const words =
      total ? [`${bytes(total)} in all`, `at most ${bytes(most)} on a link`] : ["nothing was sent"];
  const roles = [...new Set(nodes.map((n) => n.role))]
                    .map((role) => {
                      const n = nodes.filter((node) => node.role === role)
                                    .reduce((sum, node) => sum + node.count, 0);
                      return `${n} ${role}${n === 1 ? "" : "s"}`;
                    })
                    .join(", ");
  return element(
      "div", {class: "picture", "data-index": strategy.index},
      drawn(
          "svg", {
            viewBox: `0 0 ${SIZE} ${SIZE}`,
            role: "img",
            "aria-label": `${strategy.name}: ${count} nodes, ${words.join(", ")}.`,
            class: joined.length > 400 ? "dense" : ""
          },
          ...joined.sort((a, b) => b.all - a.all)
              .map((pair) => line(pair, places, nodes, strategy, widest)),
          ...nodes.map((node, i) => dot(node, places[i], nodes.length))),
      element("strong", {}, strategy.name),
      element("small", {}, `${roles}${grouped ? ", drawn in groups" : ""}`),
      words.map((word) => element("small", {}, word)));
}

export function startNetwork() {
  const plot = element("div", {class: "pictures"});
  const made = figure({
    id: "network-pictures",
    title: "Bytes on the links",
    plot,
    values: () => [
        ["Strategy", "From", "To", "Bytes"],
        visible().flatMap(
            (s) => [...s.network.links]
                       .sort((a, b) => b[2] - a[2])
                       .slice(0, 64)
                       .map(
                           ([from, to, amount]) =>
                               [s.name, nodeName(s.network.nodes[from]),
                                nodeName(s.network.nodes[to]), bytes(amount)]))],
  });
  byId("network-figures").append(made.node);
  function drawNetwork() {
    const sent = (s) => s.network.links.some((link) => link[2] > 0);
    const some = visible().filter(sent);
    reveal(made.node, some.length > 0);
    if (!some.length) return;
    const widest = Math.max(
        1, ...some.map((s) => Math.max(0, ...pairs(s.network.links).map((pair) => pair.all))));
    replace(plot, some.slice(0, MOST_PICTURES).map((s) => picture(s, widest)));
    const silent = visible().filter((s) => ended(s) && !sent(s));
    made.describe({
      obtained: clockShown(),
      text: "Bytes of a whole run, both directions together; hover over a line or a node for " +
          "its figures. Circles are workers, squares are servers and other roles.",
      without: [
        some.length > MOST_PICTURES ? `The first ${MOST_PICTURES} of ${some.length} are drawn.` :
                                      "",
        silent.length ? `Sent nothing: ${listed(silent.map((s) => s.name))}.` : ""
      ].filter(Boolean)
                   .join(" "),
    });
  }
  onChange(() => drawSoon(drawNetwork));
  drawSoon(drawNetwork);
}
