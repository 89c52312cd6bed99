"""Scripts of people on live nodes: they run, one fails and says why, and a deployment corrects it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.lives.life import deployed
from tests.stacks.deployments import Raw

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NAME = "trn1-16"
LOG = "/opt/site.log"
WRITE = f'#!/bin/bash\necho "$1 as $(id -un)" >>{LOG}\n'
FAIL = "#!/usr/bin/env python3\nimport sys\nsys.exit('licence server: no route to host')\n"


def with_scripts(raw: Raw) -> None:
    configured = {"script": "site/site.sh", "args": ["configured"]}
    updated = {"script": "site/site.sh", "args": ["updated"]}
    start = {"script": "site/start.sh", "args": ["start"]}
    cluster = raw["cluster"]
    cluster["head_node"]["custom_actions"] = {
        "on_node_start": [start],
        "on_node_configured": [configured],
        "on_node_updated": [updated],
    }
    cluster["queues"][0]["custom_actions"] = {"on_node_start": [start], "on_node_configured": [configured]}


def test_a_site_script_runs_fails_and_is_corrected_by_a_deployment(
    tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "start.sh").write_text(WRITE, encoding="utf-8")
    (site / "site.sh").write_text(WRITE, encoding="utf-8")
    with deployed(tmp_path, edit=with_scripts) as life:
        life.run("bootstrap", NAME)
        life.run("deploy", NAME, "--yes")
        assert life.on_head_node(f"cat {LOG}").splitlines() == ["start as root", "configured as root"]
        on_node = life.run("exec", NAME, "--", "srun", "--nodes=1", "cat", LOG)
        assert on_node.splitlines()[-2:] == ["start as root", "configured as root"]

        (site / "site.sh").write_text(FAIL, encoding="utf-8")
        said = life.run("deploy", NAME, "--yes", code=1)
        assert "before the update is in force" in said
        reason = "site.sh ended with 1 after: licence server: no route to host"
        assert reason in " ".join(life.run("diagnose", NAME, code=1).split())

        (site / "site.sh").write_text(WRITE, encoding="utf-8")
        life.run("deploy", NAME, "--yes")
        assert life.on_head_node(f"cat {LOG}").splitlines()[-1] == "updated as root"
        wait_for(lambda: "Healthy." in life.stage.ask("status", NAME))
