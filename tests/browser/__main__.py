"""Runs the checks of `.ci/browser`, or with `pictures`, writes the pictures of the README and the book."""

import os
import re
import signal
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
    (fleets.unread, answers.unread, None),
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
    """Pages of fleets with planted troubles have the figures of the documents, and the answers. Wrong figures are found."""
    unplanted = dict(planted.FIGURES)
    for make, answer, against in TROUBLED:
        start, title = time.monotonic(), make.__name__
        fleet = make(PROGRAM, folder / title)
        page = fleet.report(folder / f"{title}.html", *(["--against", against] if against else []))
        presses = look(browser, results, title, page)
        browser.size(*checks.WIDE)
        checks.open_page(browser, page)
        documents = figures.Documents(fleet, against)
        for part, faults in figures.compare(browser, documents).items():
            results.add(f"{title}: figures of {part}", faults)
        results.add(f"{title}: answer", answer(browser, fleet))
        results.add(f"{title}: controls", checks.controls(browser, page, fleet.entries[-1]["name"]))
        html = page.read_text(encoding="utf-8")
        for part in [it for it, (pattern, _) in unplanted.items() if re.search(pattern, html)]:
            check = lambda browser, page, address: figures.compare(browser, documents)[part]
            wrong = planted.replaced(html, *unplanted.pop(part))
            report(browser, results, page, f"a wrong figure of {part}", wrong, check, "")
        note(f"{title}: {presses} stops of the keyboard, {time.monotonic() - start:.0f} s")
    results.add("every figure was planted", [f"not on any page: {it}" for it in unplanted])


def hostile(browser, results, folder):
    """Hostile names do nothing, in every state of the page, and only because they are escaped."""
    start = time.monotonic()
    page = fleets.hostile(PROGRAM, folder / "hostile").report(folder / "hostile.html")
    presses = look(browser, results, "hostile", page)
    results.add("hostile: opened", checks.harmless(browser, fleets.MARK))
    results.add("hostile: shown", checks.shown(browser, fleets.SHOWN))
    html = page.read_text(encoding="utf-8")
    for title, change, expected in planted.UNESCAPED:
        report(browser, results, page, title, change(html), planted.harmless, expected)
    note(f"hostile: {presses} stops of the keyboard, {time.monotonic() - start:.0f} s")


def large(browser, results, folder):
    """Large fleets fit into the limit of size. How fast they are depends on the machine."""
    browser.size(*checks.WIDE)
    for make, cluster in LARGE:
        title = make.__name__
        start = time.monotonic()
        fleet = make(PROGRAM, folder / title)
        rendered = time.monotonic()
        page = fleet.report(folder / f"{title}.html")
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


def report(browser, results, page, title, html, check, expected):
    """A check reports the fault that is planted in a page."""
    page.write_text(html, encoding="utf-8")
    found = check(browser, page, checks.open_page(browser, page))
    missed = [] if any(expected in it for it in found) else [f"not reported, but: {'; '.join(found)[:300] or 'nothing'}"]
    results.add(f"planted: {title}", missed)


def plant(browser, results, folder):
    """Each planted fault is reported, and the page works without its script."""
    page = fleets.Folder(PROGRAM, ROOT / "examples/quickstart").report(folder / "plain.html")
    html = page.read_text(encoding="utf-8")
    browser.size(*checks.NARROW)
    for title, (change, check, expected) in planted.FAULTS.items():
        if check is not planted.accessible or checks.axe():
            report(browser, results, page, title, change(html), check, expected)
    page.write_text(planted.replaced(html, "(?s)<script>.*</script>", ""), encoding="utf-8")
    address = checks.open_page(browser, page)
    results.add("without its script: links", checks.links(browser))
    results.add("without its script: quiet", checks.quiet(browser, address))


def pictured(browser, results, folder):
    """The pictures can be made."""
    for name, faults in pictures.write(browser, PROGRAM, ROOT, folder).items():
        results.add(f"picture {name}", faults)


PARTS = {it.__name__: it for it in (troubled, hostile, plant, large, pictured)}


def main(arguments):
    # So that the browser ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start, results = time.monotonic(), Results()
    with Driver(os.environ["CHROME"], os.environ["CHROMEDRIVER"]) as driver:
        if arguments == ["pictures"]:
            with driver.browser() as browser:
                return int(any(pictures.write(browser, PROGRAM, ROOT, ROOT / "docs/images").values()))
        for name in arguments or PARTS:
            with tempfile.TemporaryDirectory() as folder, driver.browser() as browser:
                PARTS[name](browser, results, Path(folder))
                version = browser.version
    seconds = time.monotonic() - start
    note(f"{results.checks} checks in Chrome {version}, {seconds:.0f} s, {results.failures} failures")
    return int(results.failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
