"""How commands come to their settings: by one way from a name to a file, and by no more of the file than they need.

The commands are those of Click's tree, so that a new one takes part by itself.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from config import files
from config.settings import SettingsError, load
from config.usable import Deployed, UsableFile
from scripts.account.remote import head_node, streamed_command
from scripts.core import options
from scripts.core.errors import ExitCode
from tests.command_line import leaves, ultracluster
from tests.scripts.operated import Operated
from tests.scripts.test_situations import COMMANDS, NODE, ROWS, SHOWING, STATE, layout, words_of
from tests.scripts.use.costs.test_costs import SACCT, write

GOOD = (options.CONFIG / "trn1-16.yaml").read_text(encoding="utf-8")
BROKEN: Mapping[str, str] = {
    "a wrong shape": GOOD.replace("capacity_gib: ", "capacity_gib: many # "),
    "a broken rule": f"{GOOD}\nbudget:\n  monthly_usd: 5\n",
    "an unknown key": GOOD.replace("\ncluster:", "\nclutser:"),
    "no YAML": f"{GOOD}\n\tusers: [\n",
}
MORE: Mapping[str, str] = {
    "another zone": GOOD.replace("zone_id: usw2-az4", "zone_id: euw1-az1"),
    "no nodes": GOOD.replace("max_count: ", "max_count: 0 # "),
    "no cluster": f"{GOOD.partition('cluster:')[0]}cluster: none\n",
    "a list": f"- {GOOD.replace(chr(10), chr(10) + '  ')}\n\n{GOOD}",
    "people of another file that is not there": f"{GOOD}\nusers: users.yaml\n",
    "keys that are no text": f"{GOOD}\n1: 2\n? [a]\n: b\n",
}
NEED_ALL = {
    *("bootstrap", "deploy", "drift", "fleet scale", "fleet start", "image build", "image render", "plan"),
    *("preflight", "recover", "restore", "upgrade"),
}
"""Commands that create or compare what the settings say; the others are for what is deployed."""
WALK = """
import contextlib, io, json, sys
from scripts.main import main
said = {}
for words in json.loads(sys.argv[1]):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        main(words)
    said[" ".join(words)] = text.getvalue()
print(json.dumps(said))
"""


def with_a_deployment(name: str, command: click.Command) -> list[str] | None:
    """Return the words with which a command reads the settings of `dev`; None: it reads none."""
    kinds = [each for each in command.params if isinstance(each.type, options.DeploymentName)]
    if not kinds:
        return None
    if isinstance(kinds[0], click.Option):
        return [*name.split(), "mine", kinds[0].opts[0], "dev"]
    needed = ("--max-usd", "40", "--emulate") if name == "prove" else ()
    return [*name.split(), "dev", *ROWS.get(name, needed)]


def elsewhere(folder: Path, text: str) -> dict[str, str]:
    """Write settings of the name of shipped ones into a folder; return the environment in which they are found."""
    (folder / "dev.yaml").write_text(text, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **kept,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "PYTHONPATH": os.pathsep.join(map(str, (options.ROOT, options.ROOT / "constructs"))),
        files.VARIABLE: ".",
    }


@pytest.mark.slow
def test_every_command_reads_the_file_of_the_folder_that_the_variable_names(tmp_path: Path) -> None:
    """Each is run in another directory, with a name that both folders have; the file there is wrong, and named so."""
    walked = [words for name, command in leaves() if (words := with_a_deployment(name, command))]
    done = subprocess.run(
        [sys.executable, "-c", WALK, json.dumps(walked)],
        cwd=tmp_path,
        env=elsewhere(tmp_path, GOOD.replace("zone_id: ", "zone_id: nowhere # ")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout)
    assert len(said) > len(COMMANDS)
    assert [
        words for words, text in said.items() if "dev.yaml:" not in text or "zone_id: got 'nowhere'" not in text
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [["app.py"], ["pipeline_app.py"], ["-m", "scripts", "pipeline", "outputs", "read"]])
def test_the_apps_of_the_cdk_and_the_pipeline_read_it_too(words: list[str], tmp_path: Path) -> None:
    program = [str(options.ROOT / each) if each.endswith(".py") else each for each in words]
    done = subprocess.run(
        [sys.executable, *program],
        cwd=tmp_path,
        env={
            **elsewhere(tmp_path, GOOD.replace("zone_id: ", "zone_id: nowhere # ")),
            "CDK_CONTEXT_JSON": json.dumps({"env": "dev"}),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (ExitCode.FAILED, ExitCode.UNUSABLE)
    assert "dev.yaml:8: zone_id: got 'nowhere'" in done.stderr, done.stderr


def test_no_command_acts_on_a_deployment_by_a_copy_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    for name in ("trn1-16", "copy"):
        (tmp_path / f"{name}.yaml").write_text(GOOD, encoding="utf-8")
    for name in COMMANDS:
        assert ultracluster(*words_of(name, "copy")) == ExitCode.UNUSABLE, name
        printed = capsys.readouterr()
        assert "trn1-16.yaml has the stacks of that name" in printed.out + printed.err, name


@pytest.mark.parametrize("text", [*BROKEN.values(), *MORE.values()], ids=[*BROKEN, *MORE])
def test_what_is_right_in_a_wrong_file_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError):
        load(path)
    file = UsableFile(path)
    assert (file.name, file.is_named, file.region) == ("trn1-16", True, "us-west-2")
    settings = file.settings("us-west-2", Deployed())
    assert settings is not None
    assert (settings.name, settings.region) == ("trn1-16", "us-west-2")
    assert settings.stack_name("storage") == "trn1-16-storage"


def test_a_wrong_file_keeps_nobody_from_what_is_deployed(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each command returns what it returns with the file as it was deployed, and names the first line that is wrong."""
    (tmp_path / "slurm").mkdir()
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.02)
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.02)
    (tmp_path / "key.pub").touch()
    write(tmp_path / "slurm", SACCT.replace("|trn1|1|", f"|trn1|{int(time.time()) - 60}|"))
    operated.shell(f"STATE={STATE} SLURM={tmp_path / 'slurm'} PYTHON={Path(sys.executable).parent}; {NODE}")
    operated.set_fleet("STOPPED")
    words = {**SHOWING, "fleet stop": (), "ssh": ("--print-config", "--identity", f"{tmp_path}/key")}
    assert words.keys() | NEED_ALL | {"port-forward", "shell"} == COMMANDS.keys()  # which would run a program for ever

    def said(name: str) -> tuple[int, Any, str]:
        line = [*words_of(name)[: -len(ROWS.get(name, ())) or None], *words[name]]
        code = ultracluster(*line)
        out, err = capfd.readouterr()
        return code, layout(json.loads(out)) if out.startswith("{") else out, err

    # What is read of each kind of file, tests of `UsableFile` say: each command has one kind.
    kinds = itertools.cycle(BROKEN.items())
    for name in sorted(words.keys() - NEED_ALL):
        (tmp_path / "trn1-16.yaml").write_text(GOOD, encoding="utf-8")
        code, out, _ = said(name)
        # there is no job 1, and what Slurm answers here has nodes that take no jobs
        assert code == (ExitCode.FAILED if name in ("diagnose", "jobs logs", "status") else ExitCode.DONE), name
        kind, text = next(kinds)
        (tmp_path / "trn1-16.yaml").write_text(text, encoding="utf-8")
        again, printed, err = said(name)
        assert err.startswith(f"warning: {tmp_path}/trn1-16.yaml:"), (name, kind, err)
        assert "What is right in the file, and what is deployed, is used.\n" in err
        assert (again, printed) == (code, out), (name, kind, err)


def test_a_file_without_region_and_name_is_completed_by_the_command_line(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    for name in ("trn1-16", "other"):
        (tmp_path / f"{name}.yaml").write_text("")
    assert ultracluster("inventory", "trn1-16") == ExitCode.UNUSABLE
    assert "hint: give it: --region REGION" in capfd.readouterr().err
    assert ultracluster("inventory", "trn1-16", "--region", "us-west-2") == ExitCode.DONE
    assert "trn1-16-storage" in capfd.readouterr().out
    assert ultracluster("inventory", "other", "--region", "us-west-2") == ExitCode.UNUSABLE
    assert "there are no stacks of a deployment other in us-west-2" in capfd.readouterr().err


@pytest.mark.parametrize("name", sorted(NEED_ALL))
def test_what_creates_or_compares_needs_all(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    (tmp_path / "trn1-16.yaml").write_text(BROKEN["a broken rule"], encoding="utf-8")
    assert ultracluster(*words_of(name)) == ExitCode.UNUSABLE
    assert "budget.emails" in capsys.readouterr().err
