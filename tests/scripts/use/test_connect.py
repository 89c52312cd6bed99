"""`ssh` and `port-forward`: a fake of the Session Manager plugin records how it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.account.deployment import Deployment
from scripts.account.remote import nodes
from scripts.use import sessions
from tests.command_line import ultracluster
from tests.config.test_users import ED25519
from tests.scripts.operated import Operated

ROOT = Path(__file__).parents[3]
SHELL = {"DocumentName": "AWS-StartInteractiveCommand", "Parameters": {"command": ["sudo su - ubuntu"]}}
JOB = (
    "sudo runuser --login --session-command 'srun --job-name=shell --nodes=1 --ntasks=1 --exclusive --cpu-bind=none "
    "--time=30 --partition=trn1 --pty bash --login' -- ubuntu"
)
FORWARDING = {
    "DocumentName": "AWS-StartPortForwardingSession",
    "Parameters": {"portNumber": ["6006"], "localPortNumber": ["9999"]},
}
NO_DOCUMENT = (
    "There is no session document ultracluster-trn1-16.ssh, which clusters get when they are deployed\n\n"
    "hint: ./ultracluster deploy trn1-16\n"
)
PLUGIN = """\
#!/bin/bash
printf '%s\\n' "$@" "$AWS_SSM_START_SESSION_RESPONSE" >"$0.called"
exit 4
"""


def install_plugin(directory: Path) -> Path:
    plugin = directory / "session-manager-plugin"
    plugin.write_text(PLUGIN, encoding="utf-8")
    plugin.chmod(0o755)
    return plugin


@pytest.mark.parametrize(
    ("words", "session", "said"),
    [
        (["ssh", "trn1-16"], SHELL, ""),
        (["shell", "trn1-16"], SHELL, ""),
        (
            ["shell", "trn1-16", "--node", "--queue", "trn1", "--time", "30"],
            {"DocumentName": "AWS-StartInteractiveCommand", "Parameters": {"command": [JOB]}},
            "A shell on a compute node, 30 at most, once Slurm has one\n",
        ),
        (
            ["ssh", "trn1-16", "--identity", "KEY", "--proxy", "trn1-16", "22"],
            {"DocumentName": "ultracluster-trn1-16.ssh", "Parameters": {}},
            "",
        ),
        (
            ["port-forward", "trn1-16", "6006", "--local-port", "9999"],
            FORWARDING,
            "http://localhost:9999 is port 6006 of head-node, until Ctrl-C\n",
        ),
    ],
)
def test_the_plugin_gets_what_the_aws_cli_gives_it(
    words: list[str], session: dict[str, object], said: str, operated: Operated, tmp_path: Path
) -> None:
    operated.shell("true")
    plugin, key = install_plugin(tmp_path), tmp_path / "key"
    Path(f"{key}.pub").write_text(ED25519, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "scripts", *(str(key) if each == "KEY" else each for each in words)]
    done = subprocess.run(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, said)
    called = Path(f"{plugin}.called").read_text(encoding="utf-8").splitlines()
    response, region, operation, profile, request, endpoint, variable = called
    assert response == "AWS_SSM_START_SESSION_RESPONSE"
    assert set(json.loads(variable)) == {"SessionId", "TokenValue", "StreamUrl"}
    assert (region, operation, profile) == ("us-west-2", "StartSession", "")
    parameters = json.loads(request)
    assert parameters == {**parameters, "Target": operated.head_node, **session}
    assert endpoint == os.environ["AWS_ENDPOINT_URL"]


def test_without_the_plugin_it_says_where_to_get_it(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ultracluster("ssh", "trn1-16") == 2
    assert "session-manager-working-with-install-plugin.html" in capsys.readouterr().err


def test_an_agent_that_is_down(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_plugin(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert ultracluster("ssh", "trn1-16") == 1
    assert "it still boots" in capsys.readouterr().err


def test_ssh_leads_to_port_22_by_the_document_of_the_cluster_or_nowhere(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.shell("true")
    install_plugin(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    operated.client("ssm").delete_document(Name="ultracluster-trn1-16.ssh")
    (tmp_path / "key.pub").write_text(ED25519, encoding="utf-8")
    proxy = ["ssh", "trn1-16", "--identity", str(tmp_path / "key"), "--proxy", "trn1-16"]
    operated.calls()
    assert ultracluster(*proxy, "20049") == 2
    assert capsys.readouterr().err.endswith("got port 20049; allowed: 22\n")
    assert operated.calls() == []
    assert ultracluster(*proxy, "22") == 2
    assert capsys.readouterr().err.endswith(NO_DOCUMENT)


def print_json(*arguments: str) -> int:
    return ultracluster("ssh", "trn1-16", "--output", "json", *arguments)


def test_it_prints_how_to_connect(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    operated.calls()
    assert print_json() == 0
    document = json.loads(capsys.readouterr().out)
    assert document["instance_id"] == operated.head_node
    assert document["command"][-1] == json.dumps(SHELL["Parameters"])
    assert operated.calls().count("ssm:StartSession") == 0


def test_a_compute_node_by_each_of_its_names(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    [instance_id] = operated.launch(1)
    host = next(each.host for each in nodes.list_present(operated.deployment()) if each.instance_id == instance_id)
    address = host.removeprefix("ip-").replace("-", ".")
    operated.shell(f"""echo '{{"addresses":{{"trn1-dy-trn1-32xl-1":"{address}"}}}}'""")
    for name in (instance_id, host, address, "trn1-dy-trn1-32xl-1"):
        assert print_json("--node", name) == 0
        assert json.loads(capsys.readouterr().out)["instance_id"] == instance_id
    assert print_json("--node", "ip-10-0-99-99") == 1
    assert "ip-10-0-99-99 does not run now" in capsys.readouterr().err
    assert print_json("--node", "slurmctld") == 2
    assert "got slurmctld as a node; allowed: head-node, an instance id" in capsys.readouterr().err


def test_a_head_node_that_does_not_run(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [head] = [{**each, "State": {"Name": "stopped"}} for each in operated.deployment().nodes()]
    monkeypatch.setattr(Deployment, "nodes", lambda _: [head])
    assert print_json() == 1
    said = capsys.readouterr().err
    assert f"The head node {head['InstanceId']} of trn1-16 is stopped.\n\nhint: ./ultracluster status trn1-16\n" in said


def test_the_running_head_node_beside_one_that_shuts_down(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [head] = operated.deployment().nodes()
    old = {
        **head, "InstanceId": "i-0123456789abcdef0", "PrivateIpAddress": "10.0.99.9", "State": {"Name": "shutting-down"}
    }  # fmt: skip
    monkeypatch.setattr(Deployment, "nodes", lambda _: [old, head])
    assert print_json() == 0
    assert json.loads(capsys.readouterr().out)["instance_id"] == head["InstanceId"]
    deployment = operated.deployment()
    [node] = nodes.over_time(deployment, operated.log_group, "head-node", print)
    assert node.instance_id == head["InstanceId"]
    assert print_json("--node", "i-0123456789abcdef0") == 1
    assert "i-0123456789abcdef0 is shutting-down" in capsys.readouterr().err


def test_users_type_the_command_in_a_shell_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    head_node = nodes.Node("head-node", "ip-10-0-0-1", "i-0123456789abcdef0", "running")
    monkeypatch.setattr(nodes, "running", lambda *_: head_node)
    monkeypatch.setattr(sessions, "open_session", lambda *given: opened.extend(given[1:]))
    monkeypatch.setenv("PATH", "/nowhere")
    ultracluster("shell", "team", "--node")
    command = "srun --job-name=shell --nodes=1 --ntasks=1 --exclusive --cpu-bind=none --time=1:00:00 --pty bash --login"
    own = sessions.Session("ultracluster-team")
    assert opened == [head_node.instance_id, own, f"On the head node, type: {command}"]
