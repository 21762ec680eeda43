"""The pictures of the README and the book: the page of two examples."""

import struct
from pathlib import Path

import fleets

LARGEST = 150_000
WIDTH = 1100
# The file, the example, the part of the page at the top, and the height and the scale of the picture.
PICTURES = (
    ("report-quickstart.png", "quickstart", "body", 850, 0.9),
    ("report-hub.png", "hub-and-spokes", "#graph", 1550, 0.7),
)


def write(browser, program, root, folder):
    """Writes all pictures into a folder. Returns the faults of each."""
    browser.scheme("light")
    faults = {}
    for name, example, part, height, scale in PICTURES:
        page = fleets.Folder(program, root / "examples" / example).report(Path(folder, f"{example}.html"))
        browser.size(WIDTH, height)
        browser.open(page)
        top = browser.run("return document.querySelector(arguments[0]).getBoundingClientRect().top", part)
        data = browser.screenshot(max(top - 16, 0), height, scale)
        page.unlink()
        Path(folder, name).write_bytes(data)
        size = struct.unpack(">II", data[16:24])
        expected = (round(WIDTH * scale), round(height * scale))
        faults[name] = [] if size == expected else [f"{size} instead of {expected}"]
        if LARGEST < len(data):
            faults[name].append(f"{len(data):,} bytes are more than {LARGEST:,}")
    return faults
