"""What a real Chromium makes of `./ultracluster review`, of drawings and of the site, wide, narrow, light and dark."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from scripts.check.review.drawing import draw
from scripts.check.review.page import MERMAID
from tests.command_line import ultracluster
from tests.scripts.check.test_drawing import ROOT, drawings, stacks_of

pytestmark = [pytest.mark.scenario, pytest.mark.slow]

WIDTHS = (400, 1280)
NAMES = ("chromium", "chromium-browser", "google-chrome")
PAGES = (
    *("index.html", "tutorials/first-deployment.html", "guides/review.html", "guides/library.html"),
    *("reference/settings.html", "reference/commands.html", "reference/library.html", "explanation/architecture.html"),
)
MEASURE = """
<script>
addEventListener("load", async () => {
  const results = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement;
    const drawings = location.protocol == "file:" ? page.querySelectorAll("pre.mermaid").length : 0;
    for (let tries = 0; tries < 300 && page.querySelectorAll("svg[aria-roledescription]").length < drawings; tries++)
      await new Promise(resolve => setTimeout(resolve, 50));
    const drawn = [...page.querySelectorAll("svg[aria-roledescription]")].map(svg => ({
      kind: svg.getAttribute("aria-roledescription"),
      scale: svg.getBoundingClientRect().width / svg.viewBox.baseVal.width,
      cut: [...svg.querySelectorAll("foreignObject")].filter(box => box.scrollWidth > box.clientWidth + 1).length,
    }));
    results.push({
      drawn,
      inside: root.scrollWidth <= root.clientWidth,
      background: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
      requests: frame.contentWindow.performance.getEntriesByType("resource").map(each => each.name),
    });
  }
  document.body.textContent = JSON.stringify(results);
});
</script>
"""


@pytest.fixture(scope="module")
def chromium() -> str:
    """The path of a Chromium; Debian's is installed where there is none."""
    if not any(map(shutil.which, NAMES)):
        assert os.geteuid() == 0, f"this test needs one of {', '.join(NAMES)}; as root it installs Debian's"
        apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet=2", "--yes"]
        subprocess.check_call([*apt, "update"])
        subprocess.check_call([*apt, "install", "--no-install-recommends", "chromium", "fonts-dejavu-core"])
    return next(filter(None, map(shutil.which, NAMES)))


def look(
    chromium: str, profile: Path, directory: Path, pages: Sequence[str], *, dark: bool, base: str = ""
) -> list[dict[str, Any]]:
    """Return what Chromium shows of pages, each at all widths.

    Args:
        chromium: Its path.
        profile: Where it keeps its own files.
        directory: Where to write a page with the others in frames.
        pages: Addresses, below that of the directory.
        dark: Whether people prefer dark pages.
        base: Address of the directory; empty: it is read from the disk.
    """
    frames = [
        f'<iframe src="{page}" style="width: {width}px; height: 900px"></iframe>' for page in pages for width in WIDTHS
    ]
    start = directory / "frames.html"
    start.write_text(f'<link rel="icon" href="data:,">{"".join(frames)}{MEASURE}', encoding="utf-8")
    address = f"{base}/frames.html" if base else start.as_uri()
    done = subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"),
            *(
                f"--user-data-dir={profile}",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--enable-logging=stderr",
            ),
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            # Only drawings of pages on the disk are waited for: beside a server, virtual time may stand still for ever.
            *(() if base else ("--virtual-time-budget=60000",)),
            *("--dump-dom", address),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    start.unlink()
    assert not re.findall(r".*CONSOLE.*", done.stderr)
    body = re.search(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    assert body, done.stdout
    return list(json.loads(html.unescape(body[1])))


def test_page_is_whole_and_readable_and_asks_nobody(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "review.html"
    assert ultracluster("review", "reserved", "--file", str(page)) == 0
    text = page.read_text(encoding="utf-8")
    assert (
        "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" in text
    )
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles[:6] == [
        *("Architecture", "What it creates", "Who may do what", "Who may reach whom", "Findings of ParallelCluster"),
        "Findings of cdk-nag",
    ]
    assert "Costs, US dollars" in titles

    hostile = stacks_of("much")
    link = next(each for each in hostile["much-storage"].resources.values() if each["Type"].endswith("Association"))
    link["Properties"]["FileSystemPath"] = '/a"]--><script>document.body.remove()</script>#;%%{init: {}}%%`end'
    pages = [page]
    for name, drawing in {**drawings(), "hostile": draw(hostile)}.items():
        path = tmp_path / f"{name}.html"
        path.write_text(
            f'<body><pre class="mermaid">{html.escape(drawing)}</pre><script src="{MERMAID.as_uri()}"></script>',
            encoding="utf-8",
        )
        pages.append(path)
    for dark, shown in ((False, pages), (True, [page])):  # a drawing alone follows no preference
        results = look(chromium, tmp_path / "profile", tmp_path, [each.name for each in shown], dark=dark)
        for path, result in zip([each for each in shown for _ in WIDTHS], results, strict=True):
            assert [each["kind"] for each in result["drawn"]] == ["flowchart-v2"], path
            assert result["drawn"][0]["cut"] == 0, path
        for wide in results[: len(WIDTHS)]:
            assert wide["inside"]
            assert wide["drawn"][0]["scale"] > 0.5
            assert wide["requests"] == []
            assert wide["background"] == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


@pytest.fixture(scope="module")
def site() -> tuple[Path, str]:
    """The built site, and its address, at which a thread serves it until the tests end."""
    subprocess.check_call(["make", "docs"], cwd=ROOT)
    directory = ROOT / "build/site"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=directory))
    Thread(target=server.serve_forever, daemon=True).start()
    return directory, f"http://127.0.0.1:{server.server_port}"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_site_fits_and_asks_nobody(chromium: str, site: tuple[Path, str], tmp_path: Path) -> None:
    directory, address = site
    for dark in (False, True):
        results = look(chromium, tmp_path, directory, PAGES, dark=dark, base=address)
        for page, shown in zip([each for each in PAGES for _ in WIDTHS], results, strict=True):
            assert shown["inside"], page
            assert [each for each in shown["requests"] if not each.startswith((address, "data:"))] == [], page
