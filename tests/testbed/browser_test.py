"""The report in a real browser (Chromium, headless): drawn, usable, silent, safe, quick to open.
What it may and may not show is in page_rules_test.py.

usage: browser_test.py TUTTI
"""
import os
import sys
import unittest

import fixture
from pages import Pages

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CHARTS = ["quality-time", "quality-samples", "quality-bytes", "loss-time", "time-to-target",
          "time-split", "energy-time", "staleness"]


class Report(Pages):
    def test_everything_is_drawn_in_both_themes_and_on_a_phone(self):
        for width, scheme in ((1280, "light"), (1280, "dark"), (375, "light"), (1920, "dark")):
            with self.subTest(width=width, scheme=scheme):
                self.open(fixture.comparison(), "drawn", width, scheme)
                painted = self.painted()
                self.assertEqual(sorted(painted), sorted(CHARTS))
                for chart, pixels in painted.items():
                    self.assertGreater(pixels, 3000, chart)
                self.assertEqual(self.run_js("return document.documentElement.dataset.theme"), scheme)
                self.assertEqual(len(self.find("#timeline svg .lane")), fixture.NODES)
                self.assertGreater(len(self.find("#timeline svg rect.kind-compute")), 7)
                self.assertEqual(len(self.find(".picture")), 6)  # one node alone sends nothing
                self.assertEqual(len(self.find(".picture .node.server")), 4)
                self.assertGreater(len(self.find(".picture .link")), 40)
                self.assertLessEqual(
                    self.run_js("return document.documentElement.scrollWidth - innerWidth"), 0)
                self.expect_quiet()

    def test_the_headline_says_what_was_and_what_was_not_reached(self):
        self.open(fixture.comparison(), "headline")
        text = self.find("#headline")[0].text
        for part in ("butterfly reaches 85 % accuracy first", "less time than ring",
                     "async-server reaches the target in 2 of 3 seeds only",
                     "gossip does not reach the target", "diverged: local-sgd", "failed: two-level"):
            self.assertIn(part, text)
        none = fixture.comparison()
        for strategy in none["strategies"]:
            strategy["reached"], strategy["to_target_s"] = 0, None
        self.open(none, "none")
        self.assertIn("No strategy reaches the target of 85 %", self.find(".verdict")[0].text)
        none["task"]["target"] = None
        self.open(none, "untargeted")
        self.assertIn("No target was set", self.find(".verdict")[0].text)
        self.expect_quiet()

    def test_switches_act_on_every_figure(self):
        self.open(fixture.comparison(), "switches")
        for chart in CHARTS:
            if chart not in ("staleness", "quality-bytes"):
                self.assertIn("ring", self.strategies_in(chart), chart)
        self.click(".chip", "ring")
        self.click(".chip", "gossip")
        for chart in CHARTS:
            self.assertFalse({"ring", "gossip"} & self.strategies_in(chart), chart)
            self.assertTrue(self.strategies_in(chart), chart)
        self.assertNotIn("ring", self.names_in_table())
        self.assertEqual(len(self.find(".picture")), 4)
        options = [o.text for o in self.find("#timeline select option")]
        self.assertNotIn("ring", options)
        self.assertIn("butterfly", options)
        # With the keyboard as well: the button that was pressed keeps the focus.
        self.browser.switch_to.active_element.send_keys(Keys.SPACE)
        self.settle()
        self.assertIn("gossip", self.strategies_in("quality-time"))
        self.click("#toggles .quiet", "Baseline")
        self.assertEqual(self.names_in_table(), ["solo"])
        self.click("#toggles .quiet", "At target")
        self.assertEqual(set(self.names_in_table()), {"solo", "ring", "butterfly", "parameter-server"})
        self.click("#toggles .quiet", "All")
        self.assertEqual(len(self.names_in_table()), 8)
        self.expect_quiet()

    def test_the_table_sorts_groups_and_marks(self):
        self.open(fixture.comparison(), "table")
        self.assertEqual(self.names_in_table()[0], "butterfly")
        self.assertEqual(self.names_in_table()[-2:], ["local-sgd", "two-level"], "broken ones last")
        self.click('#table th[data-key="to_target_s"] button')
        self.assertEqual(self.names_in_table()[0], "solo")
        self.assertEqual(self.find('#table th[data-key="to_target_s"]')[0].get_attribute("aria-sort"),
                         "descending")
        self.click('#table th[data-key="name"] button')
        names = self.names_in_table()
        self.assertEqual(names, sorted(names))
        rows = {row.get_attribute("data-name"): row for row in self.find("#table tr[data-name]")}
        self.assertIn("★ 39.3 s", rows["butterfly"].text)
        self.assertIn("not reached", rows["gossip"].text)
        self.assertIn("broken", rows["local-sgd"].get_attribute("class"))
        errors = [row.text for row in self.find("#table tr.error")]
        self.assertIn("strategy.groups: 3 does not divide 8 workers; use 2 or 4", errors)
        columns = len(self.find("#table thead th"))
        self.click("#table-controls button", "all")
        self.assertGreater(len(self.find("#table thead th")), columns + 10)
        self.find("#table-controls select option[value=timing]")[0].click()
        groups = [row.text for row in self.find("#table tr.group")]
        self.assertEqual(groups, ["timing: asynchronous", "timing: synchronous"])
        self.find("#table-controls select option[value=stragglers]")[0].click()
        groups = [row.text for row in self.find("#table tr.group")]
        self.assertEqual(groups, ["stragglers: everybody waits", "stragglers: nobody waits",
                                  "stragglers: unknown"])
        self.click("#architectures summary")
        self.eventually(lambda: self.find("#architectures tbody tr"), "no table of architectures")
        rows = [row.text for row in self.find("#architectures tbody tr")]
        self.assertIn("gossip decentralised data decentralised asynchronous graph shares of each batch "
                      "nobody waits sums of gradients a share of the batch", rows)
        self.expect_quiet()

    def test_dark_switch_values_and_axes(self):
        self.open(fixture.comparison(), "dark")

        def background():
            return self.run_js("return getComputedStyle(document.body).backgroundColor")
        light = background()
        line = self.run_js("return Chart.getChart('quality-time-chart').data.datasets[2].borderColor")
        self.click("#theme")
        self.click("#theme")
        self.assertEqual(self.run_js("return document.documentElement.dataset.theme"), "dark")
        self.assertNotEqual(background(), light)
        self.assertNotEqual(self.run_js(
            "return Chart.getChart('quality-time-chart').data.datasets[2].borderColor"), line)
        self.click("#quality-time summary")
        self.eventually(lambda: len(self.find("#quality-time .values tbody tr")) > 20,
                        "the table of values is never filled")
        self.click("#learning-controls button", "logarithmic")
        self.assertEqual(self.run_js("return Chart.getChart('quality-time-chart').scales.x.type"),
                         "logarithmic")
        self.expect_quiet()

    def test_every_figure_says_how_it_was_obtained_and_has_words(self):
        self.open(fixture.comparison(), "words")
        figures = self.find("figure")
        self.assertEqual(len(figures), len(CHARTS) + 3)  # and a timeline, pictures, a table
        for figure in figures:
            badge = figure.find_element(By.CSS_SELECTOR, "figcaption .badge").text
            self.assertRegex(badge, "measured|simulated|estimated")
            self.assertGreater(len(figure.find_element(By.CSS_SELECTOR, ".note").text), 20)
        for canvas in self.find("canvas"):
            self.assertGreater(len(canvas.get_attribute("aria-label")), 40)
        for svg in self.find("figure svg:not([aria-hidden])"):
            self.assertTrue(svg.get_attribute("aria-label"))
        real = fixture.comparison()
        for strategy in real["strategies"]:
            strategy["obtained"], strategy["energy_method"] = "measured", "load and TDP"
        self.open(real, "real")
        self.assertEqual(self.find("#energy-time .badge")[0].text, "estimated")
        self.assertEqual(self.find("#quality-time .badge")[0].text, "measured")
        text = self.find("main")[0].text
        for definition in real["definitions"].values():
            self.assertIn(definition, text)
        self.assertIn('data = "fashion-mnist"', self.find("pre")[0].text)
        self.assertIn("1.13.1", text)

    def test_hover_shows_values(self):
        self.open(fixture.comparison(), "hover")
        link = self.find(".picture .link")[0]
        self.run_js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", link)
        self.run_js("arguments[0].dispatchEvent(new PointerEvent('pointermove', "
                    "{clientX: 300, clientY: 300}))", link)
        self.assertIn("B", self.find("#tip")[0].text)
        self.run_js("arguments[0].dispatchEvent(new PointerEvent('pointerleave'))", link)
        self.assertEqual(self.find("#tip")[0].text, "")
        canvas = self.find("#quality-time-chart")[0]
        self.run_js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
        webdriver.ActionChains(self.browser).move_to_element(canvas).perform()
        lines = self.eventually(lambda: self.run_js("""
            const done = Chart.getChart('quality-time-chart').tooltip;
            return done.opacity ? done.body.map((b) => b.lines[0]) : [];"""), "no tip is shown")
        self.assertTrue(any("solo: " in line and "–" in line for line in lines), lines)
        self.expect_quiet()

    def test_hostile_texts_stay_text(self):
        hostile = fixture.hostile()
        self.open(hostile, "hostile")
        self.assertIsNone(self.run_js("return window.pwned"))
        self.assertEqual(self.find("img"), [])
        self.assertEqual(set(self.names_in_table()), {s["name"] for s in hostile["strategies"]})
        self.assertIn(hostile["strategies"][0]["name"], self.find("#toggles")[0].text)
        for text in (hostile["task"]["model"], hostile["cluster"]["network"]):
            self.assertIn(text, self.find("h1")[0].text)
        for details in self.find("summary"):
            self.run_js("arguments[0].parentNode.open = true", details)
        self.assertIsNone(self.run_js("return window.pwned"))
        self.expect_quiet()

    def test_little_or_odd_data_is_drawn_without_errors(self):
        bare = fixture.envelope([{"name": "x", "status": "failed", "error": "no luck"}])
        for key in ("task", "cluster", "definitions", "job", "versions", "machine", "validation"):
            del bare[key]
        self.open(bare, "bare")
        self.assertIn("no luck", self.find("#table")[0].text)
        self.expect_quiet()
        lone = fixture.comparison()
        lone["strategies"] = lone["strategies"][:1]
        self.open(lone, "lone")
        self.assertRegex(self.find(".verdict")[0].text, "solo reaches 85 % accuracy after [0-9]+ s.$")
        self.expect_quiet()

    def test_clients_of_a_federation_are_drawn_where_there_are_any(self):
        comparison = fixture.comparison()
        self.open(comparison, "no-clients")
        self.assertFalse(self.find("#clients")[0].is_displayed())
        comparison["strategies"][0]["clients"] = {
            "columns": ["client", "samples", "<b>shirt</b>", "bag"],
            "rows": [[0, 30, 10, 20], [1, 5, 5, 0], [2, 8, 8, 0]]}
        self.open(comparison, "clients")
        self.assertTrue(self.find("#clients")[0].is_displayed())
        self.assertEqual(len(self.find("#client-labels .drawing svg rect")), 4)
        self.assertEqual(len(self.find("#client-labels .drawing svg .lane")), 3)
        self.assertIn("<b>shirt</b>", self.find("#client-labels .legend")[0].text)
        self.expect_quiet()

    def test_many_nodes_are_drawn_in_groups(self):
        many = fixture.comparison()
        ring = many["strategies"][1]
        ring["nodes"] = [{"rank": r, "role": "worker"} for r in range(500)]
        ring["links"] = [[r, (r + 1) % 500, 1000] for r in range(500)]
        ring["timeline"] = [{"rank": r, "role": "worker", "intervals": [["compute", 0, 1]]}
                            for r in range(500)]
        self.open(many, "many")
        picture = self.find('.picture[data-index="1"]')[0]
        self.assertEqual(len(picture.find_elements(By.CSS_SELECTOR, ".node")), 32)
        self.assertIn("500 workers, drawn in groups", picture.text)
        self.assertIn("The first 64 of 500 nodes", self.find("#timeline")[0].text)
        self.expect_quiet()

    def test_a_thousand_runs_and_a_million_points_open(self):
        """Prints the time; its bound is generous, because tests share their machine."""
        for name, comparison in (("points", fixture.large()), ("runs", fixture.wide())):
            self.open(comparison, name)
            self.assertLess(os.path.getsize(os.path.join(self.folder.name, name + ".html")), 16e6)
            opened_ms, drawn_ms = self.run_js(
                "return [performance.getEntriesByType('navigation')[0].loadEventEnd,"
                "        performance.getEntriesByName('drawn')[0].startTime]")
            print(f"{name}: opened in {opened_ms / 1000:.2f} s, all figures drawn after "
                  f"{drawn_ms / 1000:.2f} s", file=sys.stderr)
            self.assertLess(drawn_ms, 30000)
            self.assertEqual(len(self.strategies_in("quality-time")), 12)
            painted = self.painted()
            self.assertIn("loss-time", self.charts())
            for chart in self.charts():
                self.assertGreater(painted[chart], 3000, chart)
            self.click("#toggles .quiet", "All")
            self.assertEqual(len(self.strategies_in("quality-time")), 40)
            self.assertIn(f"The best 40 of the {len(comparison['strategies'])} shown are drawn",
                          self.find("#quality-time")[0].text)
            self.expect_quiet()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
