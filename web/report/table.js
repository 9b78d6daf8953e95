// The result table: sorted by any column, grouped on request, best values marked, failures in red.

import {COLUMNS, GROUPINGS, groupOf} from "./columns.js";
import {badge, byId, chooser, element, replace, segmented} from "./dom.js";
import {isNumber, listed, range, UNKNOWN} from "./format.js";
import {swatchOf} from "./looks.js";
import {broken, candidates, clockShown, comparison, ended, field, higherIsBetter, isBaseline, mean, reachedByAll, seedCount, severalSeeds, strategies, target, visible} from "./model.js";
import {onChange} from "./page.js";

const MOST_ROWS = 200;
const reachedSomewhere = strategies.some((s) => mean(s.to_target_s) !== null);
const hasQuality = strategies.some((s) => mean((s.quality || {}).final) !== null);
const order = reachedSomewhere ? {key: "to_target_s", descending: false} :
    hasQuality                 ? {key: "final", descending: higherIsBetter} :
                                 {key: "total_s", descending: false};
let grouping = "";
let long = false;

// A column without a single value says nothing.
const columns = () =>
    COLUMNS.filter((c) => (long || !c.long) && field().some((s) => mean(c.value(s)) !== null));

// What is not known is last in either direction; so is what broke off.
function sorted(some) {
  const column = COLUMNS.find((c) => c.key === order.key) || COLUMNS[0];
  const sign = order.descending ? -1 : 1;
  return [...some].sort((a, b) => {
    if (order.key === "name") return sign * a.name.localeCompare(b.name);
    const x = mean(column.value(a)), y = mean(column.value(b));
    if (broken(a) !== broken(b)) return broken(a) ? 1 : -1;
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (x - y);
  });
}

// The best value of a column, unless most rows share it: then it tells nothing.
function bestOf(column, some) {
  const values = candidates(some)
                     .map((s) => mean(column.value(s)))
                     .filter((v) => isNumber(v) && !(column.talk && v === 0));
  if (!column.wanted || values.length < 2) return null;
  const top = column.wanted === "least" ? Math.min(...values) : Math.max(...values);
  return values.filter((v) => v === top).length * 2 > values.length ? null : top;
}

function cell(column, strategy, top) {
  const stat = column.value(strategy), value = mean(stat);
  if (value === null) {
    const missed = column.key === "to_target_s" && target !== null && ended(strategy);
    return element(
        "td", {class: missed ? "missed" : "unknown", "data-label": column.heading, role: "cell"},
        missed ? "not reached" : UNKNOWN);
  }
  const isBest = top !== null && value === top && candidates(visible()).includes(strategy);
  const partly = column.key === "to_target_s" && !reachedByAll(strategy) && ended(strategy);
  const spread = isNumber(stat.min) && stat.min !== stat.max ?
      range(column.format(stat.min), column.format(stat.max)) :
      !isNumber(stat.min) && isNumber(stat.max) && stat.max !== value ?
      `at most ${column.format(stat.max)}` :
      null;
  return element(
      "td", {class: isBest ? "best" : null, "data-label": column.heading, role: "cell"},
      element("span", {class: "value"}, isBest ? "★ " : "", column.format(value)),
      spread ? element("small", {}, spread) : null,
      partly ?
          element(
              "small", {class: "missed"}, `${strategy.reached} of ${seedCount(strategy)} seeds`) :
          null);
}

function status(strategy) {
  if (broken(strategy)) return element("span", {class: "pill bad"}, `✕ ${strategy.status}`);
  if (target === null) return element("span", {class: "pill"}, "done");
  if (reachedByAll(strategy)) return element("span", {class: "pill good"}, "✓ target reached");
  return element(
      "span", {class: "pill warn"},
      strategy.reached > 0 ? `target in ${strategy.reached} of ${seedCount(strategy)}` :
                             "target missed");
}

function rows(strategy, shownColumns, tops) {
  const facts = [
    isBaseline(strategy) ? "baseline" : null,
    strategy.workers ? `${strategy.workers} ${strategy.workers === 1 ? "node" : "nodes"}` : null,
    strategy.plan || null,
    strategy.same_run_as ? `exactly the run of ${strategy.same_run_as}` : null,
    strategy.shared_curve_of ? `learning curve of ${strategy.shared_curve_of}` : null
  ].filter(Boolean).join(", ");
  const row = element(
      "tr", {class: broken(strategy) ? "broken" : null, "data-name": strategy.name, role: "row"},
      element(
          "th", {scope: "row", role: "rowheader"},
          element("span", {class: "name"}, swatchOf(strategy), strategy.name),
          facts ? element("small", {}, facts) : null),
      element("td", {class: "status", role: "cell"}, status(strategy)),
      shownColumns.map((column, i) => cell(column, strategy, tops[i])));
  if (!strategy.error) return [row];
  return [
    row,
    element(
        "tr", {class: "error", role: "row"},
        element(
            "td", {colspan: shownColumns.length + 2, role: "cell"},
            element("p", {}, strategy.error)))
  ];
}

function sortBy(key, descending) {
  order.key = key;
  order.descending = descending;
  draw();
}

function heading(column, some) {
  const active = order.key === column.key;
  const arrow = active ? (order.descending ? " ↓" : " ↑") : "";
  return element(
      "th", {
        scope: "col",
        role: "columnheader",
        "data-key": column.key,
        "aria-sort": active ? (order.descending ? "descending" : "ascending") : "none",
      },
      element(
          "button", {
            type: "button",
            title: column.obtained ? column.obtained(some) : "",
            onclick: () => {
              sortBy(column.key, active ? !order.descending : column.wanted === "most");
              byId("table").querySelector(`th[data-key="${column.key}"] button`).focus();
            },
          },
          column.heading, element("span", {class: "arrow", "aria-hidden": "true"}, arrow)),
      column.obtained ? element("small", {}, column.obtained(some)) : null);
}

const NAME = {
  key: "name",
  heading: "Strategy",
  wanted: "least"
};

// On a narrow screen rows are cards and there are no headings to click: a chooser sorts there. It
// is made anew only when the columns are others, so that it keeps the focus.
const sorting = element("span", {class: "narrow"});
let sortable = "";
function drawSorting(columnsNow) {
  const choices = [NAME, ...columnsNow];
  const keys = choices.map((c) => c.key).join(" ");
  if (keys !== sortable)
    replace(
        sorting,
        chooser(
            "Sort by", choices.map((c) => [c.key, c.heading]), order.key,
            (key) => sortBy(key, choices.find((c) => c.key === key).wanted === "most")));
  sortable = keys;
  sorting.querySelector("select").value = order.key;
}

function draw() {
  const some = visible(), all = sorted(some), shownColumns = columns();
  byId("results").hidden = !field().length;
  replace(
      byId("table-lead"), badge(clockShown()),
      document.createTextNode(` One row per strategy${
          severalSeeds() ? ": mean over its seeds, and below it the lowest and the highest" :
                           ""}.`));
  drawSorting(shownColumns);
  const tops = shownColumns.map((column) => bestOf(column, some));
  const limited = all.slice(0, MOST_ROWS);
  const groups = grouping ? [...new Set(limited.map((s) => groupOf(s, grouping)))].sort() : [null];
  const bodies = groups.map(
      (group) => element(
          "tbody", {role: "rowgroup"},
          group === null ?
              null :
              element(
                  "tr", {class: "group", role: "row"},
                  element(
                      "th", {scope: "rowgroup", role: "cell", colspan: shownColumns.length + 2},
                      element("span", {}, `${grouping}: ${group}`))),
          limited.filter((s) => group === null || groupOf(s, grouping) === group)
              .flatMap((s) => rows(s, shownColumns, tops))));
  replace(
      byId("table"),
      element(
          "table", {class: "results", role: "table"},
          element("caption", {class: "hidden"}, "Results of each strategy"),
          element(
              "thead", {role: "rowgroup"},
              element(
                  "tr", {role: "row"}, heading(NAME, some),
                  element("th", {scope: "col", role: "columnheader"}, "Status"),
                  shownColumns.map((column) => heading(column, some)))),
          bodies));
  byId("table").hidden = !all.length;
  drawNote(some, all.length, tops.some((top) => top !== null));
}

function drawNote(some, count, starred) {
  const methods = (key) => listed([...new Set(field().map((s) => s[key]).filter(Boolean))]);
  replace(byId("table-note"), document.createTextNode([
    count ? "" : "No strategy is chosen; choose some above.",
    starred ? `★ marks the best value of a column among the strategies shown${
                  candidates(some).some(reachedByAll) ? " that reach the target" : ""}.` :
              "",
    count > MOST_ROWS ?
        `The first ${MOST_ROWS} of ${count} rows are listed; switch strategies off to see others.` :
        "",
    methods("energy_method") ? `Energy: ${methods("energy_method")}.` : "",
    methods("co2e_method") ? `CO₂e: ${methods("co2e_method")}.` : "",
    methods("cost_method") ? `Cost in ${methods("currency")}: ${methods("cost_method")}.` : "",
    clockShown() === "simulated" && comparison.validation ? comparison.validation.text : "",
  ].filter(Boolean).join(" ")));
}

export function startTable() {
  replace(byId("table-controls"), chooser("Group by", GROUPINGS, grouping, (value) => {
            grouping = value;
            draw();
          }), segmented("Columns", [[false, "main"], [true, "all"]], long, (value) => {
            long = value;
            draw();
          }), sorting);
  onChange(draw);
  draw();
}
