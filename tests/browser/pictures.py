"""The pictures of the README and the book: the page of two examples."""

import struct
from pathlib import Path

import fleets

LARGEST = 150_000
SIZE = (1100, 800)
# The file, the example, and the part of the page at the top of the picture.
PICTURES = (
    ("report-quickstart.png", "quickstart", "verdict"),
    ("report-hub.png", "hub-and-spokes", "graph"),
)


def write(browser, program, root, folder):
    """Writes all pictures into a folder. Returns their paths."""
    browser.scheme("light")
    browser.size(*SIZE)
    for name, example, fragment in PICTURES:
        page = fleets.Folder(program, root / "examples" / example).report(Path(folder, f"{example}.html"))
        browser.open(page, fragment)
        Path(folder, name).write_bytes(browser.screenshot())
        page.unlink()
    return [Path(folder, name) for name, _, _ in PICTURES]


def faults(path):
    """A picture has the size that the texts around it expect."""
    data = path.read_bytes()
    size = struct.unpack(">II", data[16:24])
    found = [] if data.startswith(b"\x89PNG\r\n\x1a\n") and size == SIZE else [f"{size} instead of {SIZE}"]
    return found + ([f"{len(data):,} bytes are more than {LARGEST:,}"] if LARGEST < len(data) else [])
