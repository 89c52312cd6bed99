"""What people type: the pinned CDK command line, and app.py's answer to what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_violations_of_a_file_reach_the_user_each_with_its_line(tmp_path: Path) -> None:
    text = (ROOT / "config" / "dev.yaml").read_text(encoding="utf-8")
    bad = tmp_path / "bad.yaml"
    bad.write_text(text.replace("zone_id: usw2-az4", "zone_id: use1-az4").replace("max_count: 2", "max_count: -1"))
    lines = bad.read_text(encoding="utf-8").splitlines()
    zone, count = (next(n for n, line in enumerate(lines, 1) if key in line) for key in ("use1-az4", "max_count: -1"))
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "CDK_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    cdk: list[str | Path] = [ROOT / "node_modules" / ".bin" / "cdk", "--no-notices", "--output", tmp_path / "out"]

    done = subprocess.run(
        [*cdk, "synth", "--quiet", "-c", f"env={bad.with_suffix('')}"],
        cwd=ROOT,
        env={**environment, "PATH": path, "CDK_DISABLE_CLI_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert f"bad.yaml:{zone}: zone_id: got 'use1-az4'" in done.stderr
    assert f"bad.yaml:{count}: cluster.queues[0].compute_resources[0].max_count: got -1" in done.stderr
    assert "Traceback" not in done.stderr
