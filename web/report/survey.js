// The survey: every architecture on every task, as a table for quality and one for time. Each cell
// leads to its runs, each task to its report.

import {badge, byId, element, replace} from "./dom.js";
import {digits, grams, isNumber, kilowattHours, listed, seconds} from "./format.js";
import {startTheme} from "./theme.js";

const survey = JSON.parse(byId("survey").textContent);
const ran = survey.tasks.filter((task) => task.cells);
const cellsOf = (task) => Object.entries(task.cells);
// A run that failed early did not say which clock it had: it is shown with those of its task.
const clockOfCell = (task, cell) =>
    cell.obtained || cellsOf(task).map(([, c]) => c.obtained).find(Boolean) || "simulated";
const clocks = [
  ...new Set(ran.flatMap((task) => cellsOf(task).map(([, cell]) => clockOfCell(task, cell))))
].sort().reverse();

const KINDS_OF_TABLE = [
  {
    id: "time",
    title: "Training time to the target",
    rule: survey.rules.time,
    mark: "time_mark",
    text: (cell) => (isNumber(cell.time_s) ? seconds(cell.time_s) : "missed"),
    known: (cell) => isNumber(cell.time_s)
  },
  {
    id: "quality",
    title: "Model quality at the end",
    rule: survey.rules.quality,
    mark: "quality_mark",
    text: (cell) => (isNumber(cell.quality) ? digits(cell.quality, 4) : "not measured"),
    known: (cell) => isNumber(cell.quality)
  },
];
const MARKS_IN_WORDS = {
  "+": "better than most",
  o: "like most",
  "-": "worse than most"
};

const shortTask = (task) => task.name.replace(/^[^-]*-/, "");
const link = (href, ...content) => element("a", {href}, ...content);
const folderOf = (task) => task.folder.split("/").map(encodeURIComponent).join("/");

function surveyCell(task, name, clock, kind) {
  const cell = task.cells[name];
  const attributes = {"data-label": shortTask(task), role: "cell"};
  if (!cell || clockOfCell(task, cell) !== clock) {
    const refused = (task.refused || {})[name];
    return element(
        "td", {...attributes, class: "unknown", title: refused || null},
        refused ? "not possible" : "–");
  }
  if (cell.status !== "done" && !kind.known(cell))
    return element(
        "td", {...attributes, title: cell.error},
        link(`${folderOf(task)}/report.html`, element("span", {class: "bad"}, `✕ ${cell.status}`)));
  const mark = cell[kind.mark] || "-";
  const run = (cell.runs || [])[0];
  return element(
      "td", {...attributes, title: MARKS_IN_WORDS[mark]},
      link(
          `${folderOf(task)}/${
              run ? run.split("/").map(encodeURIComponent).join("/") : "report.html"}`,
          kind.text(cell)),
      element("span", {class: `mark ${{"+": "plus", "-": "minus"}[mark] || "even"}`}, mark));
}

// The baseline first, then by name. A row without a cell would be empty.
function architectures(tasks, clock) {
  const names = new Set(tasks.flatMap(
      (task) => cellsOf(task)
                    .filter(([, cell]) => clockOfCell(task, cell) === clock)
                    .map(([name]) => name)));
  return [...names].sort(
      (a, b) => (b === "solo") - (a === "solo") || a.localeCompare(b, "en", {numeric: true}));
}

function surveyTable(kind, clock) {
  const some = ran.filter(
      (task) =>
          cellsOf(task).some(([, cell]) => clockOfCell(task, cell) === clock && kind.known(cell)));
  if (!some.length) return null;
  const rows = architectures(some, clock)
                   .map(
                       (name) => element(
                           "tr", {"data-name": name, role: "row"},
                           element(
                               "th", {scope: "row", role: "rowheader"},
                               element("span", {class: "name"}, name),
                               name === "solo" ? element("small", {}, "baseline") : null),
                           some.map((task) => surveyCell(task, name, clock, kind))));
  const id = clocks.length > 1 ? `${kind.id}-${clock}` : kind.id;
  return element(
      "section", {id, "aria-labelledby": `${id}-title`},
      element("h2", {id: `${id}-title`}, kind.title),
      element("p", {class: "lead"}, badge(clock), ` ${kind.rule}.`),
      element(
          "div",
          {class: "scroll table-card", tabindex: "0", role: "region", "aria-label": kind.title},
          element(
              "table", {class: "results survey", role: "table"},
              element(
                  "thead", {role: "rowgroup"},
                  element(
                      "tr", {role: "row"},
                      element("th", {scope: "col", role: "columnheader"}, "Architecture"),
                      some.map(
                          (task) => element(
                              "th", {scope: "col", role: "columnheader"},
                              link(`${folderOf(task)}/report.html`, shortTask(task)),
                              element("small", {}, task.learning || task.model))))),
              element("tbody", {role: "rowgroup"}, rows))));
}

// How often each architecture is better than most in time, in words.
function surveyVerdict(clock) {
  const pluses = new Map();
  ran.forEach((task) => cellsOf(task).forEach(([name, cell]) => {
    if (clockOfCell(task, cell) === clock && cell.time_mark === "+")
      pluses.set(name, (pluses.get(name) || 0) + 1);
  }));
  const most = Math.max(0, ...pluses.values());
  const first = [...pluses].filter(([, n]) => n === most).map(([name]) => name);
  return most ?
      [
        element("b", {}, listed(first)),
        ` ${first.length === 1 ? "gets" : "get"} to the target sooner ` +
            `than most on ${most} of ${ran.length} tasks.`
      ] :
      ["No architecture gets to the target sooner than most on any task."];
}

function reportLinks() {
  return ran.flatMap(
      (task, i) => [i ? ", " : "", link(`${folderOf(task)}/report.html`, shortTask(task))]);
}

function reasonsList() {
  const skipped =
      survey.tasks.filter((task) => task.skipped)
          .map(
              (task) =>
                  element("li", {}, element("b", {}, task.name), ` is left out: ${task.skipped}.`));
  const refused = new Map();
  ran.forEach((task) => Object.entries(task.refused || {}).forEach(([name, why]) => {
    if (!refused.has(why)) refused.set(why, []);
    refused.get(why).push(`${name} on ${shortTask(task)}`);
  }));
  const reasons = [...refused].map(
      ([why, some]) => element("li", {}, element("b", {}, listed(some)), `: ${why}`));
  return [
    skipped.length ? element("ul", {class: "remarks"}, skipped) : null,
    reasons.length ? element(
                         "details", {class: "card"},
                         element("summary", {}, "Why an architecture is not possible on a task"),
                         element("ul", {class: "remarks"}, reasons)) :
                     null
  ];
}

startTheme();
replace(
    byId("title"),
    document.createTextNode(`Which architecture for which task on ${survey.cluster}?`));
replace(
    byId("headline"),
    element(
        "p", {class: "verdict"},
        ran.length ? surveyVerdict(clocks[0]) : "No task could be run here."),
    element(
        "p", {class: "lead"}, "Every cell comes from runs and leads to them. ",
        ran.length ? ["Reports of the tasks: ", ...reportLinks(), "."] : null));
const tables = clocks.flatMap((clock) => KINDS_OF_TABLE.map((kind) => surveyTable(kind, clock)))
                   .filter(Boolean);
replace(byId("tables"), tables);
replace(
    byId("contents"),
    tables.map((section) => link(`#${section.id}`, section.querySelector("h2").textContent)));
replace(byId("left-out"), reasonsList());
const {spent} = survey;
replace(
    byId("footer"),
    document.createTextNode(`${
        spent ? `Computing this survey took ${kilowattHours(spent.kwh)} and ${
                    grams(spent.co2e_g)} of CO₂e, in ${seconds(spent.wall_s)} (${spent.method}). ` :
                ""}This file needs no network.`));
document.documentElement.dataset.ready = "true";
