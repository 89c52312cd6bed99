"""`connect`: a stand-in for the Session Manager plugin tells how it was called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts.commands import connect
from scripts.deployment import Deployment
from scripts.remote import nodes
from tests.scripts.account import Operated

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs/schemas/connect.json").read_text(encoding="utf-8"))
SHELL = {"DocumentName": "AWS-StartInteractiveCommand", "Parameters": {"command": ["sudo su - ubuntu"]}}
PLUGIN = """\
#!/bin/bash
[[ $1 == --version ]] && { echo VERSION; exit; }
printf '%s\\n' "$@" "${AWS_SSM_START_SESSION_RESPONSE:-nothing}" >"$0.called"
exit 4
"""


def opened(path: Path, version: str, *arguments: str) -> tuple[int, list[str]]:
    """Run the program in a process of its own, and return its exit code and what the plugin was given."""
    plugin = path / "session-manager-plugin"
    plugin.write_text(PLUGIN.replace("VERSION", version), encoding="utf-8")
    plugin.chmod(0o755)
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "scripts", "connect", "trn1-16", *arguments]
    code = subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode
    return code, Path(f"{plugin}.called").read_text(encoding="utf-8").splitlines()


def test_the_plugin_gets_what_the_aws_cli_gives_it(operated: Operated, tmp_path: Path) -> None:
    operated.shell("true")
    code, (response, region, operation, profile, request, endpoint, variable) = opened(tmp_path, "1.2.707.0")
    assert code == 4
    assert response == "AWS_SSM_START_SESSION_RESPONSE"
    assert set(json.loads(variable)) == {"SessionId", "TokenValue", "StreamUrl"}
    assert (region, operation, profile) == ("us-west-2", "StartSession", "")
    asked = json.loads(request)
    assert asked == {**asked, "Target": operated.head_node, **SHELL}
    assert endpoint == os.environ["AWS_ENDPOINT_URL"]


def test_an_old_plugin_gets_the_session_as_an_argument(operated: Operated, tmp_path: Path) -> None:
    operated.shell("true")
    _, called = opened(tmp_path, "1.2.497.0")
    assert set(json.loads(called[0])) == {"SessionId", "TokenValue", "StreamUrl"}
    assert called[-1] == "nothing"


def test_without_the_plugin_it_says_where_to_get_it(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.calls()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["connect", "trn1-16"])
    assert connect.main() == 2
    assert "session-manager-working-with-install-plugin.html" in capsys.readouterr().err
    assert "ssm:StartSession" not in operated.calls()


def told(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Call the program with --json."""
    monkeypatch.setattr(sys, "argv", ["connect", "trn1-16", "--json", *arguments])
    return connect.main()


def test_it_tells_how_to_connect(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.calls()
    assert told(monkeypatch) == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    assert document["instance_id"] == operated.head_node
    assert document["command"][-1] == json.dumps(SHELL["Parameters"])
    assert operated.calls().count("ssm:StartSession") == 0


def test_a_compute_node_by_each_of_its_names(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [instance_id] = operated.launch(1)
    host = next(each.host for each in nodes.list_present(operated.deployment()) if each.instance_id == instance_id)
    address = host.removeprefix("ip-").replace("-", ".")
    operated.shell(f"echo 'NodeName=trn1-dy-trn1-32xl-1 Arch=x86_64 NodeAddr={address} NodeHostName=x'")
    for name in (instance_id, host, address, "trn1-dy-trn1-32xl-1"):
        assert told(monkeypatch, "--node", name) == 0
        assert json.loads(capsys.readouterr().out)["instance_id"] == instance_id


def test_a_node_that_does_not_run(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.shell("echo 'NodeName=trn1-dy-trn1-32xl-1 NodeAddr=trn1-dy-trn1-32xl-1 X=1'")
    for name in ("ip-10-0-99-99", "trn1-dy-trn1-32xl-1"):
        assert told(monkeypatch, "--node", name) == 1
        assert f"{name} does not run now" in capsys.readouterr().err


def test_what_is_no_name_of_a_node_is_refused(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(monkeypatch, "--node", "slurmctld") == 2
    assert "got slurmctld as a node; allowed: head-node, an instance id" in capsys.readouterr().err


def in_state(operated: Operated, state: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Have all nodes in a state, and return them."""
    listed = [{**each, "State": {"Name": state}} for each in operated.deployment().nodes()]
    monkeypatch.setattr(Deployment, "nodes", lambda _: listed)
    return listed


def test_a_head_node_that_is_stopped(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [head] = in_state(operated, "stopped", monkeypatch)
    assert told(monkeypatch) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors == f"The head node {head['InstanceId']} of trn1-16 is stopped. How it is: make status ENV=trn1-16\n"


def test_a_node_that_is_being_ended(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [instance_id] = operated.launch(1)
    in_state(operated, "shutting-down", monkeypatch)
    assert told(monkeypatch, "--node", instance_id) == 1
    assert f"{instance_id} is shutting-down" in capsys.readouterr().err


def test_the_head_node_that_runs_beside_one_that_ends(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [head] = operated.deployment().nodes()
    old = {
        **head, "InstanceId": "i-0123456789abcdef0", "PrivateIpAddress": "10.0.99.9", "State": {"Name": "shutting-down"}
    }  # fmt: skip
    monkeypatch.setattr(Deployment, "nodes", lambda _: [old, head])
    assert told(monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["instance_id"] == head["InstanceId"]
    deployment = operated.deployment()
    [found] = nodes.over_time(deployment, operated.log_group, "head-node", print)
    assert found.instance_id == head["InstanceId"]


def test_an_agent_that_is_down_is_told_with_what_helps(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "session-manager-plugin"
    plugin.write_text("#!/bin/bash\n", encoding="utf-8")
    plugin.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "argv", ["connect", "trn1-16"])
    assert connect.main() == 1
    errors = capsys.readouterr().err
    assert "it still boots" in errors
    assert "make status ENV=trn1-16" in errors
