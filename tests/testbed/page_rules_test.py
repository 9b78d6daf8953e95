"""What a page may and may not show: measured and simulated figures apart, nothing empty, nothing struck
through that has not failed, the baseline always, no word of seeds where there is one, lines that
can be told apart, and no sideways scrolling on a phone.

usage: page_rules_test.py TUTTI
"""
import json
import os
import re
import subprocess
import sys
import unittest

import fixture
from pages import Pages, TUTTI

PHONE = 375


class Rules(Pages):
    def lines(self, chart):
        """Name, colour, dash and point of each line of a chart."""
        return self.run_js("""
            return Chart.getChart(arguments[0] + '-chart').data.datasets.filter((d) => d.strategy)
              .map((d) => ({name: d.label, colour: d.borderColor, dash: (d.borderDash || []).join(' '),
                            point: d.pointStyle}));""", chart)

    def pictured(self):
        """Names in any figure, in the table and in the tiles."""
        names = set(self.names_in_table())
        for chart in self.charts():
            names |= self.strategies_in(chart)
        names |= {o.text for o in self.find("#timeline select option")}
        names |= {e.text for e in self.find(".picture strong")}
        return names | {e.text for e in self.find("#perspective tbody th")}

    def test_measured_and_simulated_are_apart(self):
        mixed = fixture.mixed()
        by_clock = {clock: {s["name"] for s in mixed["strategies"] if s["obtained"] == clock}
                    for clock in ("measured", "simulated")}
        self.open(mixed, "mixed")
        for clock in ("simulated", "measured", "simulated"):
            with self.subTest(clock=clock):
                self.click("#toggles .segmented button", clock.capitalize())
                self.assertTrue(self.charts())
                self.assertTrue(self.pictured())
                self.assertEqual(self.pictured() - by_clock[clock], set())
                for badge in self.find("#learning .badge, #time .badge, #results .badge"):
                    self.assertEqual(badge.text, clock)
                verdict = self.find(".verdict")[0].text
                for name in by_clock["measured" if clock == "simulated" else "simulated"]:
                    self.assertNotRegex(verdict, f"(^| ){name}( |,|$)")
        self.assertIn("measured. The page shows that apart", self.find("#headline")[0].text)
        self.expect_quiet()

    def test_nothing_empty_is_shown(self):
        bare = fixture.envelope([fixture.failed("two-level")])
        for name, comparison, missing in (
                ("costs", fixture.costs_only(), {"learning", "clients"}),
                ("bare", bare, {"learning", "time", "energy", "step", "network", "clients"})):
            with self.subTest(name=name):
                self.open(comparison, name)
                hidden = {s.get_attribute("id") for s in self.find("main section")
                          if not s.is_displayed()}
                self.assertEqual(hidden, missing)
                for figure in self.find("figure"):
                    shown = figure.find_elements("css selector", "canvas, svg, tbody tr")
                    self.assertTrue(shown or not figure.is_displayed())
                entries = {a.get_attribute("href").split("#")[1]
                           for a in self.find("#contents a") if a.is_displayed()}
                self.assertFalse(entries & missing)
                painted = self.painted()
                for chart in self.charts():
                    self.assertGreater(painted[chart], 2000, chart)
                for tile in self.find(".tile-value"):
                    self.assertRegex(tile.text, "[0-9]")
                self.assertNotIn("undefined", self.find("body")[0].text)
                self.assertNotIn("null", self.find("main")[0].text)
                self.expect_quiet()
        # A column in which nobody has a value.
        headings = [th.text for th in self.find("#table thead th")]
        self.assertEqual(headings, ["Strategy", "Status"])

    def test_nothing_that_has_not_failed_is_struck_through(self):
        self.open(fixture.many(), "struck")
        for scheme in ("All", "Baseline"):
            self.click("#toggles .quiet", scheme)
            struck = self.run_js("""
                return [...document.querySelectorAll('body *')].filter((e) =>
                  /line-through/.test(getComputedStyle(e).textDecorationLine)).length;""")
            self.assertEqual(struck, 0)
        self.click("#toggles .quiet", "All")
        broken = {s["name"] for s in fixture.many()["strategies"] if s["status"] != "done"}
        ends = self.run_js("""
            const { datasets } = Chart.getChart('quality-time-chart').data;
            return datasets.map((d, i) => [d.strategy && d.strategy.name, (datasets[i + 1] || {}).pointStyle])
              .filter(([name]) => name);""")
        self.assertTrue(ends)
        for name, point in ends:
            self.assertEqual("cross" in point, name in broken, name)

    def test_the_baseline_is_always_there(self):
        many = fixture.many()
        self.open(many, "baseline")
        self.assertIn("solo", self.names_in_table())
        self.assertEqual(len(self.names_in_table()), 12)
        for button in ("All", "Baseline"):
            self.click("#toggles .quiet", button)
            self.assertIn("solo", self.names_in_table(), button)
            for chart in ("quality-time", "time-split"):
                self.assertIn("solo", self.strategies_in(chart), button)
        self.assertEqual(self.names_in_table(), ["solo"])
        self.click("#toggles .quiet", "All")
        self.assertEqual(len(self.strategies_in("quality-time")), 40)
        self.assertIn("solo", self.strategies_in("quality-time"))
        chip = next(c for c in self.find(".chip") if c.text.startswith("solo"))
        self.assertEqual(chip.tag_name, "span", "it is no switch")
        missed = fixture.comparison()
        missed["strategies"][0].update(reached=0, to_target_s=None)
        self.open(missed, "missed")
        self.click("#toggles .quiet", "At target")
        self.assertIn("solo", self.names_in_table(), "also when it misses the target")
        # And the strategies that nobody has chosen are gone.
        without = fixture.envelope(many["strategies"][:3])
        self.open(without, "no-baseline")
        self.click("#toggles .quiet", "None")
        self.assertEqual((self.names_in_table(), self.charts()), ([], []))
        self.expect_quiet()

    def test_with_one_seed_nothing_speaks_of_seeds(self):
        self.open(fixture.one_seed(), "one-seed")
        for details in self.find("main details summary"):
            self.run_js("arguments[0].parentNode.open = true", details)
        for chart in self.charts():
            label = self.find(f"#{chart}-chart")[0].get_attribute("aria-label")
            self.assertNotIn("seed", label.lower())
        # The configuration may name it.
        text = self.run_js("""
            return [...document.querySelectorAll('main > *:not(#facts):not(#job)')]
              .map((e) => e.innerText).join('\\n');""")
        self.assertEqual(re.findall(".*seed.*", text, re.IGNORECASE), [])
        self.assertNotIn("lowest", text.lower())
        self.open(fixture.comparison(), "three-seeds")
        self.assertIn("mean over seeds", self.find("main")[0].text)

    def test_what_is_shown_can_be_told_apart(self):
        self.open(fixture.many(), "apart")
        for scheme in ("light", "dark"):
            lines = self.lines("quality-time")
            self.assertEqual(len(lines), 12)
            self.assertEqual(len({line["colour"] for line in lines}), 12, scheme)
            self.click("#theme")
            self.click("#theme" if scheme == "light" else "#toggles .quiet")
        # Those that stay keep their colour when another one goes or comes.
        before = {line["name"]: line["colour"] for line in self.lines("quality-time")}
        gone = next(name for name in before if name != "solo")
        self.click("#toggles .quiet", "All")
        self.click(".chip", gone)
        for line in self.lines("quality-time"):
            self.assertEqual(before.get(line["name"], line["colour"]), line["colour"])
        looks = [(line["colour"], line["dash"]) for line in self.lines("quality-time")]
        self.assertEqual(len(looks), 40)
        self.assertEqual(len(set(looks)), 40)

    def test_each_line_chart_has_a_legend_with_its_patterns(self):
        self.open(fixture.many(), "legend")
        self.click("#toggles .quiet", "All")
        for chart in ("quality-time", "quality-samples", "quality-bytes", "loss-time"):
            lines = [(line["name"], line["colour"], line["dash"]) for line in self.lines(chart)]
            legend = self.run_js("""
                return [...document.querySelectorAll(`#${arguments[0]} .legend.lines li`)].map((li) => {
                  const line = li.querySelector('line');
                  return [li.textContent, line.getAttribute('stroke'),
                          line.getAttribute('stroke-dasharray') || ''];
                });""", chart)
            self.assertTrue(lines)
            self.assertEqual([tuple(entry) for entry in legend], lines, chart)
        self.assertGreater(len({dash for _, _, dash in lines}), 2)

    def test_the_loss_is_smoothed_unless_somebody_asks(self):
        self.open(fixture.one_seed(), "loss")

        def wiggles():
            points = self.run_js("""
                return Chart.getChart('loss-time-chart').data.datasets
                  .find((d) => d.label === 'ring').data.map((p) => p.y);""")
            return sum(abs(b - a) for a, b in zip(points, points[1:]))
        smoothed = wiggles()
        self.assertIn("smoothed", self.find("#loss-time")[0].text)
        self.click("#learning-controls button", "raw")
        self.assertLess(3 * smoothed, wiggles())
        self.assertNotIn("smoothed", self.find("#loss-time .note")[0].text)
        losses = fixture.one_seed()["strategies"][1]["series"][0]["loss"]
        last = self.run_js("""
            return Chart.getChart('loss-time-chart').data.datasets
              .find((d) => d.label === 'ring').data.at(-1).y;""")
        self.assertAlmostEqual(last, losses[-1], places=5)

    def test_the_headline_is_a_question_and_the_configuration_is_below(self):
        self.open(fixture.comparison(), "question")
        self.assertEqual(self.find("h1")[0].text,
                         "Which architecture trains LeNet on Fashion-MNIST fastest on 8 nodes at 1 Gbit/s?")
        answer, facts = (self.find(s)[0].rect["y"] for s in (".verdict", "#facts"))
        self.assertLess(self.find("h1")[0].rect["y"], answer)
        self.assertLess(answer, facts)
        self.assertIn("8 nodes of 20 GFLOP/s on 1 Gbit/s", self.find("#facts")[0].text)

    def test_a_phone_shows_cards_and_never_scrolls_sideways(self):
        for name, comparison in (("all", fixture.comparison()), ("fifty", fixture.many()),
                                 ("mixed", fixture.mixed()), ("costs", fixture.costs_only()),
                                 ("hostile", fixture.hostile())):
            with self.subTest(name=name):
                self.open(comparison, "phone-" + name, PHONE)
                self.click("#table-controls button", "all")
                for details in self.find("main details summary"):
                    self.run_js("arguments[0].parentNode.open = true", details)
                self.eventually(lambda: self.find("#quality-time .values tbody tr, "
                                                  "#time-split .values tbody tr"), "no values")
                self.expect_no_sideways_scrolling()
                cards = self.find("#table tr[data-name]")
                self.assertTrue(cards)
                for card in cards:
                    self.assertEqual(card.value_of_css_property("display"), "block")
                self.assertFalse(self.find("#table thead")[0].is_displayed())
                label = self.run_js("""
                    const cell = document.querySelector('#table td[data-label]');
                    return getComputedStyle(cell, '::before').content;""")
                self.assertRegex(label, "[a-z]")
        self.assertTrue(self.find("#table-controls .narrow")[0].is_displayed())
        self.open(fixture.comparison(), "sorted", PHONE)
        self.find("#table-controls .narrow option[value=name]")[0].click()
        names = self.names_in_table()
        self.assertEqual(names, sorted(names))
        self.expect_quiet()

    def test_figures_stand_in_perspective(self):
        made = fixture.one_seed()
        ring = made["strategies"][1]
        ring.update(kwh=fixture.stat([2.5]), co2e_g=fixture.stat([1000]), cost=fixture.stat([3]),
                    spot_cost=fixture.stat([1]))
        made["spent"] = {"wall_s": 60, "cpu_s": 90, "joules": 3600, "kwh": 0.001, "co2e_g": 0.475,
                         "cost": 0.01, "currency": "EUR", "method": "estimated from load"}
        self.open(made, "perspective")
        row = next(r.text for r in self.find("#perspective tbody tr") if r.text.startswith("ring"))
        for part in ("2.5 kWh", "1 kg", "1 – 3 EUR", "4.02 km"):
            self.assertIn(part, row)
        text = self.find("#perspective .note")[0].text
        self.assertIn("EPA-420-F-23-014", text)
        self.assertIn("Computing this comparison took 1 Wh and 475 mg of CO₂e", text)


SURVEY_CELL = {"status": "done", "error": "", "obtained": "simulated", "quality": 0.9,
               "quality_mark": "o", "time_s": 1.5, "time_mark": "+", "reached": 1,
               "runs": ["runs/x-seed1"]}


def surveyed(names):
    cells = {name: dict(SURVEY_CELL) for name in names}
    cells["late"] = dict(SURVEY_CELL, time_s=None, time_mark="-", reached=0)
    cells["gone"] = dict(SURVEY_CELL, status="diverged", quality=None, time_s=None)
    tasks = [{"name": f"table-task{i}", "data": "csv", "model": "mlp", "target": 0.9,
              "folder": f"table-task{i}", "learning": "classification", "metric": "accuracy",
              "cells": cells, "refused": {"split": "task.model cannot be split; take another"}}
             for i in range(8)]
    tasks.append({"name": "away", "data": "csv", "model": "mlp", "target": 0.9, "folder": "away",
                  "skipped": "its data is not on this machine"})
    return {"schema": 1, "kind": "survey", "cluster": "rack-1g", "tasks": tasks,
            "rules": {"quality": "final quality; + is better", "time": "time to target; + is shorter"}}


class SurveyPage(Pages):
    """`tutti survey` makes the page from survey.json; its template is inside the program, so a small
    survey is run and its data replaced."""

    def open_survey(self, data, name, width=1280, scheme="light"):
        template = os.path.join(self.folder.name, "survey", "survey.html")
        if not os.path.exists(template):
            job = os.path.join(self.folder.name, "easy.toml")
            with open(job, "w", encoding="utf-8") as file:
                file.write('name = "easy"\n[task]\ndata = { kind = "synthetic-classes", samples = 40 }\n'
                           'model = "logistic"\nglobal_batch = 8\nepochs = 1\ntarget = 0.5\n')
            subprocess.run([TUTTI, "survey", "--tasks", job, "--strategies", "solo", "--quiet",
                            "--out", os.path.dirname(template)], check=True, cwd=self.folder.name,
                           stdout=subprocess.DEVNULL)
        with open(template, encoding="utf-8") as file:
            start, end = re.split(r'(?<=id="survey">).*?(?=</script>)', file.read(), maxsplit=1)
        page = os.path.join(self.folder.name, "survey", name + ".html")
        with open(page, "w", encoding="utf-8") as file:
            file.write(start + json.dumps(data).replace("<", "\\u003c") + end)
        self.show(page, width, scheme)

    def test_the_survey_looks_like_the_report(self):
        for width, scheme in ((1280, "light"), (1280, "dark"), (PHONE, "light")):
            with self.subTest(width=width, scheme=scheme):
                self.open_survey(surveyed(["solo", "ring", "a" * 60, "<b>x"]), "survey", width, scheme)
                self.assertEqual(self.find("h1")[0].text,
                                 "Which architecture for which task on rack-1g?")
                self.assertEqual(self.run_js("return document.documentElement.dataset.theme"), scheme)
                rows = self.find("#time tr[data-name]")
                self.assertEqual(rows[0].get_attribute("data-name"), "solo", "the baseline first")
                self.assertEqual(len(rows), 6)
                self.assertNotIn("split", [r.get_attribute("data-name") for r in rows])
                self.assertIn("1.5 s", rows[0].text)
                links = [a.get_attribute("href") for a in rows[0].find_elements("css selector", "a")]
                self.assertTrue(links[0].endswith("table-task0/runs/x-seed1"), links)
                self.assertIn("away is left out", self.find("#left-out")[0].text)
                if width == PHONE:
                    self.expect_no_sideways_scrolling()
                self.expect_quiet()

    def test_clocks_have_tables_of_their_own(self):
        data = surveyed(["solo", "ring"])
        for task in data["tasks"][:8]:
            task["cells"] = dict(task["cells"], real=dict(SURVEY_CELL, obtained="measured"))
        self.open_survey(data, "clocks")
        tables = {section.get_attribute("id"): [r.get_attribute("data-name") for r in
                                                section.find_elements("css selector", "tr[data-name]")]
                  for section in self.find("main section")}
        self.assertEqual(set(tables), {"time-simulated", "quality-simulated", "time-measured",
                                       "quality-measured"})
        self.assertEqual(tables["time-measured"], ["real"])
        self.assertNotIn("real", tables["time-simulated"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
