"""Chromium without a window, by Debian's packages, and what to ask of it."""
import sys

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    sys.exit("Selenium is missing; run ./scripts/setup --web")

# Pages come from a file, so that no request needs a name: any that tries fails, and is seen.
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"]


def chromium(profile):
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in [*ARGUMENTS, f"--user-data-dir={profile}"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def set_screen(browser, width, height, scheme):
    """A screen of this size whose owner likes `scheme`, light or dark."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})


def settle(browser):
    """Waits until the report has nothing left to draw."""
    WebDriverWait(browser, 30, 0.05).until(lambda b: b.execute_script(
        "return document.documentElement.dataset.ready") == "true")
