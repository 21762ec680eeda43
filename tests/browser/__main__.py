"""Runs the checks of `.ci/browser`. Arguments are names of parts; default: all of them."""

import os
import sys
import tempfile
import time
from pathlib import Path

import checks
import fleets
import planted
from webdriver import Driver

ROOT = Path(__file__).resolve().parent.parent.parent


class Results:
    """Counts checks, and prints what they find."""

    def __init__(self):
        self.checks = self.failures = 0

    def add(self, title, faults):
        self.checks += 1
        if faults:
            self.failures += 1
            print(f"  FAILED: {title}", *faults[:8], sep="\n    ", flush=True)
            if faults[8:]:
                print(f"    and {len(faults) - 8} more", flush=True)

    def equal(self, title, found, expected):
        self.add(title, [] if found == expected else [f"{found!r} instead of {expected!r}"])


def note(text):
    print(f"  {text}", flush=True)


def look(browser, results, title, page, mark=fleets.MARK):
    """Every check of a page that is not about its content."""
    browser.size(*checks.WIDE)
    browser.scheme("light")
    address = checks.open_page(browser, page)
    results.add(f"{title}: size", checks.small(page))
    results.add(f"{title}: quiet", checks.quiet(browser, address))
    results.add(f"{title}: ids", checks.ids(browser))
    results.add(f"{title}: nothing hostile", checks.harmless(browser, mark))
    results.add(f"{title}: light and dark", checks.schemes(browser))
    for size in (checks.WIDE, checks.NARROW):
        browser.size(*size)
        results.add(f"{title}: width {size[0]}", checks.width(browser))
        if checks.axe():
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                results.add(f"{title}: axe {size[0]} {scheme}", checks.accessible(browser))
    browser.scheme("light")
    browser.size(*checks.WIDE)
    results.add(f"{title}: links", checks.links(browser))
    faults, presses = checks.keyboard(browser, page)
    results.add(f"{title}: keyboard", faults)
    # The keyboard has opened everything.
    results.add(f"{title}: arrows", checks.arrows(browser))
    for size in (checks.WIDE, checks.NARROW):
        browser.size(*size)
        results.add(f"{title}: width {size[0]}, opened", checks.width(browser))
        if checks.axe():
            results.add(f"{title}: axe {size[0]}, opened", checks.accessible(browser))
    results.add(f"{title}: quiet after all", checks.quiet(browser, address))
    return presses


def plant(browser, results, page):
    """Each planted fault is reported."""
    html = page.read_text(encoding="utf-8")
    browser.size(*checks.NARROW)
    for title, (change, check, expected) in planted.FAULTS.items():
        if check is planted.accessible and not checks.axe():
            continue
        copy = page.with_name("planted.html")
        copy.write_text(change(html), encoding="utf-8")
        address = checks.open_page(browser, copy)
        faults = check(browser, copy, address)
        missed = [] if any(expected in it for it in faults) else [f"not reported, but: {'; '.join(faults)[:300] or 'nothing'}"]
        results.add(f"planted: {title}", missed)


def main(names):
    start, results = time.monotonic(), Results()
    with tempfile.TemporaryDirectory() as folder, Driver(os.environ["CHROME"], os.environ["CHROMEDRIVER"]) as driver:
        with driver.browser() as browser:
            page = Path(folder, "mock.html")
            page.write_text(Path("/tmp/b/mock.html").read_text())
            print(look(browser, results, "mock", page))
            plant(browser, results, page)
            note(f"Chrome {browser.version}")
    note(f"{results.checks} checks in {time.monotonic() - start:.0f} s, {results.failures} failures")
    return int(results.failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
