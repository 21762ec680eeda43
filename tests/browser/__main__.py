"""Runs the checks of `.ci/browser`, or with `pictures`, writes the pictures of the README and the book."""

import os
import sys
import tempfile
import time
from pathlib import Path

import answers
import checks
import figures
import fleets
import pictures
import planted
from webdriver import Driver

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ["PROGRAM"]
# A fleet with a planted trouble, what the page must answer, and with what it is compared.
TROUBLED = (
    (fleets.cut_off, answers.cut_off, None),
    (fleets.single_gateway, answers.single_gateway, None),
    (fleets.known_ranges, answers.known_ranges, None),
    (fleets.changed, answers.changed, "HEAD"),
)
# A large fleet, and the cluster that is searched in its page.
LARGE = ((fleets.full_mesh, "cluster-17"), (fleets.spokes, "spoke-123"))


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


def note(text):
    print(f"  {text}", flush=True)


def look(browser, results, title, page):
    """Every check of a page that is not about its content. Its parts are open afterwards."""
    browser.size(*checks.WIDE)
    browser.scheme("light")
    address = checks.open_page(browser, page)
    results.add(f"{title}: quiet", checks.quiet(browser, address))
    results.add(f"{title}: ids", checks.ids(browser))
    results.add(f"{title}: nothing hostile", checks.harmless(browser, fleets.MARK))
    results.add(f"{title}: light and dark", checks.schemes(browser))
    results.add(f"{title}: width", checks.width(browser))
    results.add(f"{title}: links", checks.links(browser))
    faults, presses = checks.keyboard(browser, page)
    results.add(f"{title}: keyboard", faults)
    results.add(f"{title}: arrows", checks.arrows(browser))
    for size in (checks.WIDE, checks.NARROW):
        browser.size(*size)
        results.add(f"{title}: width {size[0]}, opened", checks.width(browser))
        for scheme in ("light", "dark") if checks.axe() else ():
            browser.scheme(scheme)
            results.add(f"{title}: axe {size[0]} {scheme}", checks.accessible(browser))
    results.add(f"{title}: print", checks.printed(browser))
    results.add(f"{title}: quiet after all", checks.quiet(browser, address))
    return presses


def troubled(browser, results, folder):
    for make, answer, against in TROUBLED:
        start, title = time.monotonic(), make.__name__
        fleet = make(PROGRAM, folder / title)
        page = fleet.report(*(["--against", against] if against else []))
        presses = look(browser, results, title, page)
        browser.size(*checks.WIDE)
        checks.open_page(browser, page)
        for part, faults in figures.compare(browser, figures.Documents(fleet, against)).items():
            results.add(f"{title}: figures of {part}", faults)
        results.add(f"{title}: answer", answer(browser, fleet))
        note(f"{title}: {presses} stops of the keyboard, {time.monotonic() - start:.0f} s")


def hostile(browser, results, folder):
    """Hostile names do nothing, in every state of the page."""
    start = time.monotonic()
    fleet = fleets.hostile(PROGRAM, folder / "hostile")
    page = fleet.report()
    presses = look(browser, results, "hostile", page)
    results.add("hostile: opened", checks.harmless(browser, fleets.MARK))
    results.add("hostile: shown", checks.shown(browser, fleets.SHOWN))
    note(f"hostile: {presses} stops of the keyboard, {time.monotonic() - start:.0f} s")


def large(browser, results, folder):
    """Large fleets fit into the limit of size. How fast they are depends on the machine."""
    browser.size(*checks.WIDE)
    for make, cluster in LARGE:
        title = make.__name__
        start = time.monotonic()
        fleet = make(PROGRAM, folder / title)
        rendered = time.monotonic()
        page = fleet.report()
        made = time.monotonic()
        address = checks.open_page(browser, page)
        loaded, searched, filtered, found, kept = checks.call(browser, "usable", f"{cluster}-13", cluster)
        results.add(f"{title}: quiet", checks.quiet(browser, address))
        results.add(f"{title}: ids", checks.ids(browser))
        results.add(f"{title}: size", checks.small(page))
        results.add(f"{title}: search", [] if found == kept == 1 else [f"{found} and {kept} clusters are shown"])
        checks.open_page(browser, page)
        for part, faults in figures.compare(browser, figures.Documents(fleet)).items():
            results.add(f"{title}: figures of {part}", faults)
        browser.size(*checks.NARROW)
        results.add(f"{title}: width", checks.width(browser))
        browser.size(*checks.WIDE)
        times = f"loaded in {loaded:.0f} ms, searched in {searched:.0f} ms, filtered in {filtered:.0f} ms"
        note(f"{title}: {page.stat().st_size:,} bytes, made in {made - rendered:.1f} s, {times}")


def plant(browser, results, folder):
    """Each planted fault is reported."""
    page = folder / "plain.html"
    page.write_text(fleets.run(PROGRAM, ROOT / "examples/quickstart", "report"), encoding="utf-8")
    html = page.read_text(encoding="utf-8")
    browser.size(*checks.NARROW)
    for title, (change, check, expected) in planted.FAULTS.items():
        if check is planted.accessible and not checks.axe():
            continue
        page.write_text(change(html), encoding="utf-8")
        address = checks.open_page(browser, page)
        found = check(browser, page, address)
        missed = [] if any(expected in it for it in found) else [f"not reported, but: {'; '.join(found)[:300] or 'nothing'}"]
        results.add(f"planted: {title}", missed)


def pictured(browser, results, folder):
    """The pictures can be made."""
    for path in pictures.write(browser, PROGRAM, ROOT, folder):
        results.add(f"picture {path.name}", pictures.faults(path))


PARTS = {it.__name__: it for it in (troubled, hostile, plant, large, pictured)}


def main(arguments):
    start, results = time.monotonic(), Results()
    with Driver(os.environ["CHROME"], os.environ["CHROMEDRIVER"]) as driver:
        if arguments == ["pictures"]:
            with driver.browser() as browser:
                print(*pictures.write(browser, PROGRAM, ROOT, ROOT / "docs/images"), sep="\n")
            return 0
        for name in arguments or PARTS:
            with tempfile.TemporaryDirectory() as folder, driver.browser() as browser:
                PARTS[name](browser, results, Path(folder))
                version = browser.version
    seconds = time.monotonic() - start
    note(f"{results.checks} checks in Chrome {version}, {seconds:.0f} s, {results.failures} failures")
    return int(results.failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
