"""`./ultracluster review`, and what a real Chromium makes of its page and of drawings, wide, narrow, light and dark."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scripts.review.drawing import draw
from scripts.review.page import MERMAID
from tests.command_line import ultracluster
from tests.scripts.test_drawing import drawings, stacks_of

pytestmark = pytest.mark.slow

WIDTHS = (400, 1280)
NAMES = ("chromium", "chromium-browser", "google-chrome")
MEASURE = """
<script>
addEventListener("load", async () => {
  const results = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement;
    for (let tries = 0; tries < 300 && !page.querySelector("svg[aria-roledescription]"); tries++)
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


def look(chromium: str, directory: Path, pages: Sequence[Path], *, dark: bool) -> list[dict[str, Any]]:
    """Return what Chromium shows of pages, each at all widths."""
    frames = [
        f'<iframe src="{page.as_uri()}" style="width: {width}px; height: 900px"></iframe>'
        for page in pages
        for width in WIDTHS
    ]
    start = directory / "frames.html"
    start.write_text("".join(frames) + MEASURE, encoding="utf-8")
    done = subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"),
            *(f"--user-data-dir={directory / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"),
            *(f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=60000"),
            *("--dump-dom", start.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
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
    for dark in (False, True):
        results = look(chromium, tmp_path, pages, dark=dark)
        assert len(results) == len(pages) * len(WIDTHS)
        for path, result in zip([each for each in pages for _ in WIDTHS], results, strict=True):
            assert [each["kind"] for each in result["drawn"]] == ["flowchart-v2"], path
            assert result["drawn"][0]["cut"] == 0, path
        for wide in results[: len(WIDTHS)]:
            assert wide["inside"]
            assert wide["drawn"][0]["scale"] > 0.5
            assert wide["requests"] == []
            assert wide["background"] == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
