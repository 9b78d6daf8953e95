"""Pages in a browser, for tests to look at: opened, waited for, and asked what is on them."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from chromium import chromium, set_screen, settle  # first: it says what is missing

from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

TUTTI = sys.argv[1]


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = chromium(os.path.join(cls.folder.name, "profile"))
        cls.addClassCleanup(cls.browser.quit)

    def open(self, comparison, name, width=1280, scheme="light"):
        """Makes the report of a comparison and opens it."""
        source, page = (os.path.join(self.folder.name, name + end) for end in (".json", ".html"))
        with open(source, "w", encoding="utf-8") as file:
            json.dump(comparison, file)
        subprocess.run([TUTTI, "report", source, "--out", page], check=True,
                       stdout=subprocess.DEVNULL)
        self.show(page, width, scheme)

    def show(self, page, width=1280, scheme="light"):
        set_screen(self.browser, width, 1000, scheme)
        for log in ("browser", "performance"):
            self.browser.get_log(log)
        self.browser.get("file://" + page)
        self.run_js("localStorage.clear()")
        self.settle()

    def settle(self):
        """Waits until the page has nothing left to draw."""
        try:
            settle(self.browser)
        except TimeoutException:
            self.fail(f"the page is never drawn: {self.browser.get_log('browser')}")

    def eventually(self, condition, message):
        """Waits for what the browser does after an event that it only announces, such as opening
        a <details>: its "toggle" is a task of its own."""
        try:
            return WebDriverWait(self.browser, 30, 0.05).until(lambda _: condition())
        except TimeoutException:
            self.fail(message)

    def run_js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector, text=None):
        found = [e for e in self.find(selector) if text is None or e.text.strip() == text]
        self.assertTrue(found, f"no {selector} with {text}")
        self.run_js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found[0])
        found[0].click()
        self.settle()

    def painted(self):
        """How many pixels of each chart are not blank."""
        return self.run_js("""
            return Object.fromEntries([...document.querySelectorAll('canvas')].map((canvas) => {
              const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              let painted = 0;
              for (let i = 3; i < data.length; i += 4) painted += data[i] > 0;
              return [canvas.id.replace(/-chart$/, ''), painted];
            }));""")

    def charts(self):
        """Those that are shown."""
        return self.run_js("""
            return [...document.querySelectorAll('canvas')].filter((c) => c.offsetParent)
              .map((c) => c.id.replace(/-chart$/, ''));""")

    def strategies_in(self, chart):
        """Names of the strategies that a chart has data of."""
        return set(self.run_js("""
            const { data } = Chart.getChart(arguments[0] + '-chart');
            return data.rows ? data.rows.map((s) => s.name)
              : data.datasets.filter((d) => d.strategy).map((d) => d.label);""", chart))

    def names_in_table(self):
        return [row.get_attribute("data-name") for row in self.find("#table tr[data-name]")]

    def expect_no_sideways_scrolling(self):
        """Neither the page nor anything on it is wider than its place."""
        self.assertLessEqual(
            self.run_js("return document.documentElement.scrollWidth - innerWidth"), 0)
        wide = self.run_js("""
            return [...document.querySelectorAll('body *')].filter((e) => {
              const scrolls = /auto|scroll/.test(getComputedStyle(e).overflowX);
              return scrolls && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1;
            }).map((e) => e.tagName + '#' + e.id + '.' + e.className);""")
        self.assertEqual(wide, [], "these scroll sideways")
        outside = self.run_js("""
            return [...document.querySelectorAll('main *, header *')].filter((e) => {
              const box = e.getBoundingClientRect();
              return box.width > 1 && (box.right > innerWidth + 1 || box.left < -1) &&
                getComputedStyle(e).clipPath === 'none' && !e.closest('svg') && !e.closest('.toggles');
            }).map((e) => e.tagName + '#' + e.id + '.' + e.className);""")
        self.assertEqual(outside, [], "these lie beyond the edge")

    def expect_quiet(self):
        """No message on the console, and no request but for the page itself and data in it."""
        self.assertEqual(self.browser.get_log("browser"), [])
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                url = message["params"].get("request", message["params"])["url"]
                self.assertTrue(url.startswith(("file://" + self.folder.name, "data:")), url)
