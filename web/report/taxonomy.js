// How the architectures differ: the place of each in the taxonomy, as a table that is made when it
// is opened.

import {TAXONOMY, groupOf} from "./columns.js";
import {byId, element, replace, valueTable} from "./dom.js";
import {strategies} from "./model.js";

export function startTaxonomy() {
  const placed = strategies.filter((s) => s.taxonomy);
  if (!placed.length) return;
  const known = TAXONOMY.filter(([part]) => placed.some((s) => s.taxonomy[part]));
  const details = element(
      "details", {class: "card", id: "architectures"},
      element("summary", {}, "How the architectures differ"));
  const fill = () => details.append(valueTable(
      ["Strategy", ...known.map(([, title]) => title)],
      placed.map((s) => [s.name, ...known.map(([part]) => groupOf(s, part))])));
  details.addEventListener("toggle", fill, {once: true});
  replace(byId("taxonomy"), details);
}
