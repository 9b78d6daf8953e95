"""A picture of a report, to look at after a change and for the documentation.

usage: screenshot.py report.html OUT.png [WIDTH [HEIGHT [light|dark [TOP]]]]

HEIGHT 0 is the whole page; TOP is the id of the element to begin with.
"""
import base64
import os
import sys
import tempfile

from chromium import chromium, set_screen, settle


def main():
    page, out, width, height, scheme, top = (sys.argv[1:] + ["1280", "0", "light", ""][
        len(sys.argv) - 3:])[:6]
    with tempfile.TemporaryDirectory() as profile:
        browser = chromium(profile)
        try:
            set_screen(browser, int(width), int(height) or 1000, scheme)
            browser.get("file://" + os.path.abspath(page))
            settle(browser)
            whole, start = browser.execute_script(
                "const from = document.getElementById(arguments[0]);"
                "return [document.documentElement.scrollHeight,"
                "        from ? from.getBoundingClientRect().top + scrollY - 16 : 0];", top)
            picture = browser.execute_cdp_cmd("Page.captureScreenshot", {
                "format": "png", "captureBeyondViewport": True,
                "clip": {"x": 0, "y": start, "width": int(width), "scale": 1,
                         "height": int(height) or whole - start}})
            with open(out, "wb") as file:
                file.write(base64.b64decode(picture["data"]))
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
