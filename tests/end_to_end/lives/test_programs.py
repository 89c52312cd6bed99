"""Programs that this project does not know, from this machine to live nodes of an emulated account."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.lives.life import ROOT, Deployed, deployed

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NAME = "trn1-16"
MINE = ROOT / "tests/training/mine"
PROGRAM = 'run = ["train.py"]\nexport = ["save.py", "{checkpoint}", "{directory}"]\n'
SAVE = """\
import pathlib, shutil, sys
pathlib.Path(sys.argv[2]).mkdir()
shutil.copy(sys.argv[1], f"{sys.argv[2]}/model.pt")
"""
SCRIPT = (
    '#!/bin/bash\necho "task $SLURM_ARRAY_TASK_ID of $1 with $2 after step $(wc -l </fsx/runs/mine/metrics.jsonl)"\n'
)


def wait_for(life: Deployed, path: str) -> None:
    life.on_head_node(f"until [ -e {path} ]; do sleep 1; done")


def test_a_folder_and_a_script_travel_run_and_are_seen(tmp_path: Path) -> None:
    mine = shutil.copytree(MINE, tmp_path / "mine")
    (mine / "program.toml").write_text(PROGRAM, encoding="utf-8")
    (mine / "save.py").write_text(SAVE, encoding="utf-8")
    script = tmp_path / "sweep.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    with deployed(tmp_path) as life:
        life.run("bootstrap", NAME)
        life.run("deploy", NAME, "--yes")
        submitted = life.run(
            "submit", NAME, "--program", str(mine), "--nodes", "2", "--output", "/fsx/runs/mine", "--", "400"
        )  # fmt: skip
        assert "mine travels to the cluster: " in submitted
        assert re.search(r"^train +job \d+, log /fsx/runs/mine/train-\d+.log$", submitted, re.MULTILINE)
        swept = life.run(
            "submit", NAME, "--program", str(script), "--nodes", "1", "--output", "/fsx/runs/sweep", "--array", "0-1",
            "--after", "/fsx/runs/mine", "--", "a b",
        )  # fmt: skip
        [job] = re.findall(r"^job +job (\d+),", swept, re.MULTILINE)
        wait_for(life, "/fsx/runs/mine/finished")
        log = life.on_head_node("cat /fsx/runs/mine/train-*.log")
        assert re.search(r"step 400 of 400: loss \d", log), log
        assert re.search(r"\$\d+\.\d\d so far, \$0\.00 to go", log), log
        shown = life.run("runs", "show", NAME, "/fsx/runs/mine")
        assert re.search(r"^mine +mine +2 +2 ", shown, re.MULTILINE), shown
        listed = life.run("runs", "list", NAME)
        assert re.search(r"^/fsx/runs/mine +mine +400 of 400 ", listed, re.MULTILINE), listed
        exported = life.run("runs", "export", NAME, "/fsx/runs/mine", "/fsx/runs/model")
        assert "step 400 of /fsx/runs/mine is in /fsx/runs/model: " in exported
        made = life.on_head_node("cat /fsx/runs/model/README.md; stat --format=%U,%s /fsx/runs/model/model.pt")
        assert "| steps | 400 of 400 |" in made
        assert re.search(r"^ubuntu,[1-9]", made, re.MULTILINE), made
        wait_for(life, f"/fsx/runs/sweep/job-{job}_1.log")
        tasks = life.on_head_node(
            "until [ $(cat /fsx/runs/sweep/job-*.log | wc -l) = 2 ]; do sleep 1; done; cat /fsx/runs/sweep/job-*.log"
        )
        assert sorted(re.findall(r"^task .*", tasks, re.MULTILINE)) == [
            f"task {task} of /fsx/runs/sweep with a b after step 400" for task in (0, 1)
        ]
        refused = life.run(
            "submit", NAME, "--program", "/fsx/nothing", "--nodes", "1", "--output", "/fsx/runs/x", code=2
        )
        assert "--program: got /fsx/nothing; allowed: bert, a folder, a file .py, a batch script" in refused
