"""Checks of a page in the browser. Each returns a list of faults, as texts."""

import functools
import json
import os
import tarfile
from pathlib import Path

INSIDE = Path(__file__).with_name("inside.js").read_text()
WIDE, NARROW = (1280, 900), (400, 800)
LARGEST = 5_000_000
# The most elements of a page that the keyboard visits.
MOST_STOPS = 3000
AXE = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}


def call(browser, function, *arguments):
    """Calls a function of inside.js, which may be asynchronous."""
    script = f"{INSIDE}\nconst done = arguments[arguments.length - 1];\n"
    script += f"Promise.resolve({function}(...[...arguments].slice(0, -1))).then(done, (e) => done([`${{e}}`, []]));"
    return browser.run_async(script, *arguments)


def open_page(browser, page, fragment=""):
    """Opens a page, and forgets what was logged before."""
    browser.log("browser"), browser.log("performance")
    return browser.open(page, fragment)


def quiet(browser, address):
    """Nothing was logged or violates the policy, no dialog is open, and only the page itself was requested."""
    text = browser.dialog()
    faults = [] if text is None else [f"a dialog is open: {text[:80]}"]
    faults += [f"{it['source']}: {it['message'][:200]}" for it in browser.log("browser")]
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if url != address:
                faults.append(f"a request: {url[:80]}")
    return faults


def links(browser):
    """Every link leads to something that is in view then."""
    return call(browser, "links")[1]


def ids(browser):
    return call(browser, "repeatedIds")


def width(browser):
    """Nothing is wider than a narrow window."""
    return call(browser, "wide")


def keyboard(browser, page):
    """The keyboard alone reaches and opens everything, in both directions. Keys start at the top of a new page."""
    open_page(browser, page)
    call(browser, "record")
    faults, presses = tour(browser, "Tab")
    faults += call(browser, "unreached")
    faults += call(browser, "unmarked")
    browser.run("window.focused.clear()")
    back, again = tour(browser, "Shift+Tab")
    faults += [f"backwards: {it}" for it in back + call(browser, "unreached")]
    faults += call(browser, "unlinked")
    return faults, presses + again


def tour(browser, key):
    """Presses a key until it reaches nothing new, and opens every closed part on the way. Returns faults and presses."""
    faults, presses = [], 0
    browser.press(key)
    while True:
        presses += 1
        ends, is_closed, part = browser.run("return window.step()")
        if ends or MOST_STOPS < presses:
            return faults, presses
        if is_closed:
            opens = ("Enter", "Space")[presses % 2]
            browser.press(opens)
            _, is_closed, now = browser.run("return window.step()")
            if is_closed or now != part:
                faults.append(f"{opens} does not open {part}")
        browser.press(key)


def controls(browser, page, cluster):
    """The keys search, filter, change the matrix, and lead to the next part and back."""
    open_page(browser, page)
    faults = []

    def expect(what, script, *arguments):
        if not browser.run(f"return {script}", *arguments):
            faults.append(what)

    browser.press("j", "j", "k")
    expect("j and k lead to the next part and back", "document.activeElement === document.querySelector('main > section')")
    browser.press("/", *cluster)
    expect("/ and letters search", "document.activeElement.id === 'search' && document.activeElement.value === arguments[0]", cluster)
    found = "[...document.querySelectorAll('main [data-clusters]')].filter((it) => !it.hidden && !it.closest('[hidden]'))"
    expect("some entries are hidden", "document.querySelector('main [data-clusters][hidden]')")
    expect("what is shown has the word", f"{found}.every((it) => it.textContent.includes(arguments[0]))", cluster)
    expect("the cluster is found", f"{found}.some((it) => it.matches('details.card') && it.dataset.clusters === arguments[0])", cluster)
    browser.press("Escape")
    expect("Escape ends the search", "!document.querySelector('main [data-clusters][hidden]')")
    browser.press("Tab", *cluster)
    expect("letters choose a cluster", "document.getElementById('cluster').value === arguments[0]", cluster)
    expect("only entries of the cluster are shown", f"{found}.every((it) => it.dataset.clusters.split(' ').includes(arguments[0]))", cluster)
    other = "[...document.querySelectorAll('details.card')].find((it) => it.dataset.clusters !== arguments[0])"
    browser.run(f"location.hash = {other}.id", cluster)
    expect("a link shows what the filter hides", f"{other}.checkVisibility() && {other}.open", cluster)
    browser.run("document.getElementById('class')?.focus()")
    browser.press("Down")
    layers = "[...document.querySelectorAll('[data-layer]')]"
    expect("Down changes the matrix", f"!{layers}.length || {layers}.filter((it) => !it.hidden && it.getAttribute('visibility') !== 'hidden').map((it) => it.dataset.layer).join() === '1'")
    return faults


def arrows(browser):
    """The arrow keys scroll what is wider than its frame."""
    faults = []
    for number in range(call(browser, "areas")):
        call(browser, "focusArea", number)
        browser.press("Right", "Right")
        faults += call(browser, "scrolled", number)
    return faults


@functools.cache
def axe():
    """The text of axe-core, or None."""
    if "AXE" not in os.environ:
        return None
    with tarfile.open(os.environ["AXE"]) as package:
        return package.extractfile("package/axe.min.js").read().decode()


def accessible(browser):
    """axe-core finds nothing serious or critical."""
    browser.run(axe())
    return call(browser, "axe", AXE)


def schemes(browser):
    """The page is light or dark, as the person wants it."""
    browser.scheme("dark")
    dark = call(browser, "brightness")
    browser.scheme("light")
    light = call(browser, "brightness")
    return [] if dark < 0.3 < 0.7 < light else [f"brightness {light:.2f} in light and {dark:.2f} in dark"]


def printed(browser):
    """Everything is printed, also what is closed, and nothing is wider than the paper."""
    browser.run("for (const it of document.querySelectorAll('details')) it.open = false;")
    browser.run("addEventListener('beforeprint', () => { window.closed = document.querySelectorAll('details:not([open])').length; })")
    document = browser.post("/print")
    closed = browser.run("return window.closed")
    faults = [f"{closed} parts are closed in print"] if closed else []
    if not document.startswith("JVBERi"):
        faults.append("it is not a PDF")
    # A4 less the margins has 720 pixels; the browser shrinks what is wider, here by a fifth at most.
    browser.size(900, 1200)
    browser.scheme("light", "print")
    faults += call(browser, "wide")
    browser.scheme("light")
    return faults


def shown(browser, texts):
    """Hostile texts can be read, as texts."""
    whole = browser.run("return document.body.textContent")
    return [f"not shown: {it}" for it in texts if it not in whole]


def harmless(browser, mark):
    """No hostile text became part of the page's structure."""
    return call(browser, "hostile", mark)


def small(page):
    size = Path(page).stat().st_size
    return [] if size <= LARGEST else [f"{size:,} bytes are more than {LARGEST:,}"]
