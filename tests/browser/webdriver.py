"""A small client of WebDriver (https://www.w3.org/TR/webdriver2/) for chromedriver, with Python's standard library."""

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# The code points that WebDriver reserves for keys.
KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Shift": "\ue008",
    "Escape": "\ue00c",
    "Space": " ",
    "End": "\ue010",
    "Home": "\ue011",
    "Left": "\ue012",
    "Up": "\ue013",
    "Right": "\ue014",
    "Down": "\ue015",
}
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--hide-scrollbars",
    "--disable-smooth-scrolling",
    "--force-device-scale-factor=1",
    "--force-color-profile=srgb",
    "--lang=en-US",
    # The browser finds no host, also if a page escapes every check.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=direct://",
)


class Failure(Exception):
    """An answer of the driver that is an error; `kind` is its code, such as `no such alert`."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message.splitlines()[0] if message else ''}")
        self.kind = kind


class Driver:
    """A chromedriver that listens on the loopback interface, for `with`."""

    def __init__(self, chrome, chromedriver):
        self.chrome = chrome
        self.chromedriver = chromedriver

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="clustermesh-browser-", ignore_cleanup_errors=True)
        # A session of its own, so that browsers end with it even if the driver crashes.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = Path(self.folder.name, "chromedriver.log")
        self.process = subprocess.Popen(
            [self.chromedriver, f"--port={self.port}", f"--log-path={self.log}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.sessions = 0
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self):
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.05)
        raise Failure("no driver", f"{self.chromedriver} does not answer on port {self.port}")

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.folder.cleanup()

    def call(self, method, path, body=None):
        """Sends one command. Returns its `value`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
        finally:
            connection.close()
        if answer.status != 200:
            raise Failure(value["error"], value["message"])
        return value

    def browser(self, flags=()):
        """Starts a browser with an empty profile."""
        self.sessions += 1
        profile = Path(self.folder.name, f"profile-{self.sessions}")
        return Browser(self, profile, flags)


class Browser:
    """A browser with one window, for `with`."""

    def __init__(self, driver, profile, flags):
        # Chromium refuses to run as root with its sandbox.
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        arguments = [*FLAGS, *root, *flags, f"--user-data-dir={profile}"]
        options = {"binary": driver.chrome, "args": arguments}
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            # It fails commands until `dialog` closes it.
            "unhandledPromptBehavior": "ignore",
        }
        answer = driver.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.driver = driver
        self.path = f"/session/{answer['sessionId']}"
        self.version = answer["capabilities"]["browserVersion"]
        self.post("/timeouts", {"script": 100_000, "pageLoad": 100_000})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.call("DELETE", self.path)

    def get(self, path):
        return self.driver.call("GET", self.path + path)

    def post(self, path, body=None):
        return self.driver.call("POST", self.path + path, body or {})

    def open(self, path, fragment=""):
        """Opens a file and waits for its event `load`, or for a dialog. Returns its address."""
        address = Path(path).resolve().as_uri()
        try:
            self.post("/url", {"url": address + (f"#{fragment}" if fragment else "")})
        except Failure as failure:
            if failure.kind != "unexpected alert open":
                raise
        return address

    def run(self, script, *arguments):
        """Runs the body of a function in the page. Returns its result."""
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """Runs the body of a function that calls its last argument with the result."""
        return self.post("/execute/async", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.post("/element", {"using": "css selector", "value": selector})[ELEMENT]

    def type(self, element, text):
        self.post(f"/element/{element}/value", {"text": text})

    def press(self, *keys):
        """Presses and releases keys on the focused element; `Shift+Tab` holds the first."""
        actions = []
        for key in keys:
            held = [KEYS.get(it, it) for it in key.split("+")]
            actions += [{"type": "keyDown", "value": it} for it in held]
            actions += [{"type": "keyUp", "value": it} for it in reversed(held)]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def size(self, width, height):
        """Sets the size of the viewport; windows have a smallest width."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, scheme, media=""):
        """Emulates `light` or `dark`, and a medium such as `print`."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.devtools("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def devtools(self, command, parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        """Returns the new entries of the log `browser` or `performance`."""
        return self.post("/se/log", {"type": kind})

    def dialog(self):
        """Closes an open dialog. Returns its text, or None."""
        try:
            text = self.get("/alert/text")
            self.post("/alert/dismiss")
            return text
        except Failure as failure:
            if failure.kind == "no such alert":
                return None
            raise

    def screenshot(self, top, height, scale):
        """Returns a part of the page as PNG: from this line of it on, with the width of the viewport."""
        clip = {"x": 0, "y": top, "width": self.run("return innerWidth"), "height": height, "scale": scale}
        shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        return base64.b64decode(self.devtools("Page.captureScreenshot", shot)["data"])
