// What a whole training takes in units of daily life: kilowatt hours, CO2e, money, and how far a
// car drives for as much CO2e. Below it what the comparison itself took to compute.

import {byId, element, figure, replace, valueTable} from "./dom.js";
import {digits, grams, isNumber, kilowattHours, seconds} from "./format.js";
import {bestOnes, comparison, energyObtainedBy, mean, visible} from "./model.js";
import {drawSoon, onChange, reveal} from "./page.js";

const JOULES_PER_KWH = 3.6e6;
const MOST_TRAININGS = 40;

const kwhOf = (s) =>
    mean(s.kwh) ?? (mean(s.energy_j) === null ? null : mean(s.energy_j) / JOULES_PER_KWH);

function money(s) {
  if (mean(s.cost) === null) return null;
  const from = mean(s.spot_cost);
  return `${from === null ? "" : `${digits(from)} – `}${digits(mean(s.cost))} ${s.currency || ""}`;
}

function distance(co2e_g) {
  const {grams_per_km: perKm} = comparison.car || {};
  if (!isNumber(co2e_g) || !isNumber(perKm)) return null;
  const metres = (1000 * co2e_g) / perKm;
  if (metres < 1) return `${digits(100 * metres)} cm`;
  return metres < 1000 ? `${digits(metres)} m` : `${digits(metres / 1000)} km`;
}

const COLUMNS_OF_LIFE = [
  ["Energy", (s) => kilowattHours(kwhOf(s))],
  ["CO₂e", (s) => (mean(s.co2e_g) === null ? null : grams(mean(s.co2e_g)))],
  ["Cost", money],
  ["As much CO₂e as a car makes in", (s) => distance(mean(s.co2e_g))],
];

function spentText() {
  const {spent} = comparison;
  if (!spent || !isNumber(spent.joules)) return "";
  const km = distance(spent.co2e_g);
  return [
    `Computing this comparison took ${kilowattHours(spent.kwh)} and ${grams(spent.co2e_g)} of CO₂e`,
    km ? `, as much as a car makes in ${km}` : "",
    `, in ${seconds(spent.wall_s)} on the machine that computed it (${spent.method}).`
  ].join("");
}

export function startPerspective() {
  const plot = element("div", {});
  const made = figure({id: "perspective", title: "One training in perspective", plot});
  made.node.classList.add("wide");
  byId("energy-figures").append(made.node);
  const draw = () => {
    const some = bestOnes(visible().filter((s) => kwhOf(s) !== null), MOST_TRAININGS);
    reveal(made.node, some.length > 0);
    if (!some.length) return;
    const known = COLUMNS_OF_LIFE.filter(([, of]) => some.some((s) => of(s) !== null));
    replace(
        plot,
        valueTable(
            ["Strategy", ...known.map(([title]) => title)],
            some.map((s) => [s.name, ...known.map(([, of]) => of(s) ?? "–")])));
    made.describe({
      obtained: energyObtainedBy(some),
      text: [
        comparison.car ? `A car: ${comparison.car.source}.` : "",
        some.some((s) => mean(s.spot_cost) !== null) ?
            "Cost: from spot prices to those on demand." :
            "",
        spentText(),
      ].filter(Boolean)
                .join(" "),
    });
  };
  onChange(() => drawSoon(draw));
  drawSoon(draw);
}
