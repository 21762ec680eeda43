"""Faults that are planted into a copy of a real page. A check that does not report its fault fails."""

import re

import checks
import fleets

OPEN = "default-src 'unsafe-inline' data: http: https: file:"
# A hostile name in a page that does not escape it.
NAME = f"<img src=x onerror=\"window.{fleets.MARK}=1\">"


def replaced(html, pattern, new):
    """The page with another text in one place."""
    changed, count = re.subn(pattern, new, html, count=1)
    assert count == 1, f"the page has no {pattern}"
    return changed


def loosened(html):
    """The page with a policy that allows everything inline."""
    return replaced(html, r'(http-equiv="?Content-Security-Policy"? content=)"[^"]*"', rf'\1"{OPEN}"')


def unescaped(html):
    """The page as if a hostile name was let through."""
    return replaced(html, r"&lt;img src=x onerror=(\w+)=1&gt;", r"<img src=x onerror=\1=1>")


def appended(html, text):
    before, end, after = html.rpartition("</main>")
    assert end, "the page has a main part"
    return before + text + end + after


def quiet(text, is_loose=True):
    """A fault that the browser itself reports."""

    def plant(html):
        return appended(loosened(html) if is_loose else html, text)

    return plant, lambda browser, page, address: checks.quiet(browser, address)


def seen(text, check):
    """A fault that a check of the page's elements reports."""
    return lambda html: appended(loosened(html), text), check


def plain(check):
    return lambda browser, page, address: check(browser)


def keyboard(browser, page, address):
    return checks.keyboard(browser, page)[0]


def accessible(browser, page, address):
    return checks.accessible(browser)


def harmless(browser, page, address):
    return checks.harmless(browser, fleets.MARK)


# The planting of each fault, the check that must report it, and what it reports then.
FAULTS = {
    "a console error": (*quiet("<script>console.error('planted')</script>"), "planted"),
    "a console warning": (*quiet("<script>console.warn('planted')</script>"), "planted"),
    "an exception": (*quiet("<script>undefinedName()</script>"), "undefinedName"),
    "a script without a hash": (*quiet("<script>window.planted = 1</script>", is_loose=False), "Content Security Policy"),
    "a style without a hash": (*quiet("<p style='color: red'>planted</p>", is_loose=False), "Content Security Policy"),
    "an outside image": (*quiet("<img alt='' src='http://planted.invalid/'>"), "a request: http://planted.invalid/"),
    "an outside image that the policy stops": (
        *quiet("<img alt='' src='http://planted.invalid/'>", is_loose=False),
        "Content Security Policy",
    ),
    "an outside style": (*quiet("<style>@import 'https://planted.invalid/';</style>"), "a request: https://planted.invalid/"),
    "another file": (*quiet("<iframe title=t src='planted.txt'></iframe>"), "a request: file:"),
    "a dialog": (*quiet("<script>setTimeout(() => alert('planted'))</script>"), "a dialog is open: planted"),
    "a name that is not escaped": (*seen(NAME, harmless), f"a name ran as a script and set {fleets.MARK}"),
    "a name that leaves its attribute": (*seen(f"<p title='' onclick={fleets.MARK}=1>x</p>", harmless), "has onclick"),
    "a dead link": (*seen("<a href='#planted'>x</a>", plain(checks.links)), "leads nowhere"),
    "a link to a hidden part": (
        *seen("<p id=planted style='display: none'>x</p><a href='#planted'>x</a>", plain(checks.links)),
        "does not show its target",
    ),
    "a link to another site": (*seen("<a href='https://planted.invalid/'>x</a>", plain(checks.links)), "leads out of the page"),
    "an id that is there twice": (*seen("<p id=planted></p><p id=planted></p>", plain(checks.ids)), "planted is there twice"),
    "a control that Tab skips": (*seen("<button tabindex=-1>planted</button>", keyboard), "planted cannot be reached"),
    "a control for the mouse only": (*seen("<div onclick='1'>planted</div>", keyboard), "planted cannot be reached"),
    "a part that does not open": (
        *seen("<details><summary onclick='return false'>planted</summary>x</details>", keyboard),
        "does not open <summary> planted",
    ),
    "a focus that does not show": (
        *seen("<button style='outline: none'>planted</button>", keyboard),
        "planted does not show that it has the focus",
    ),
    "a trap of the focus": (
        *seen("<button onkeydown='return false'>planted</button><button>after</button>", keyboard),
        "after cannot be reached",
    ),
    "a page that is too wide": (*seen("<div style='width: 2000px'>planted</div>", plain(checks.width)), "planted"),
    "text without contrast": (
        *seen("<p style='color: #ccc; background: #fff'>planted</p>", accessible),
        "color-contrast",
    ),
    "a field without a label": (*seen("<input>", accessible), "label (critical)"),
}

# What happens if one hostile name is not escaped.
UNESCAPED = (
    ("a hostile name that is let through", lambda html: unescaped(loosened(html)), f"ran as a script and set {fleets.MARK}"),
    ("a hostile name that only the policy stops", unescaped, "<img> has onerror"),
)

# A figure of each part of the page, and a wrong one.
FIGURES = {
    "verdict": (r'(class="lead">[^<]*?)(\d)', r"\g<1>1\2"),
    "graph": (r"(<title[^>]*>)(\d+ clusters)", r"\g<1>1\2"),
    "matrix": (r"(</span> \d+/)(\d)", r"\g<1>1\2"),
    "pairs": (r'(?s)("item pair".*?<td class="n">)(\d)', r"\g<1>1\2"),
    "clusters": (r"(\d+ Peers in other clusters)", r"1\1"),
    "findings": (r'(?s)("item finding"[^>]*>\s*<p>).*?</p>', r"\1</p>"),
    "expectations": (r": (not )?met</summary>", r": unknown</summary>"),
    "losses": (r"(</strong> fails, )(\d)", r"\g<1>1\2"),
    "ranges": (r'(?s)("Declared ranges">.*?<tbody>.*?<code>)(\d)', r"\g<1>9\2"),
    "load": (r'(?s)("load-title".*?<span class="grade )(\w+)">\w+', r'\1\2">wrong'),
    "change": (r"(\d+ Peers? added)", r"9\1"),
}
