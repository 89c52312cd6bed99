"""People on nodes, for real: accounts, sshd, sudo and iptables of Debian, in root directories of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.nodes.base import Base
from tests.nodes.facts import COMPUTE_NODE, HEAD_NODE, LOGIN_NODE
from tests.nodes.machine import Machine
from tests.nodes.packages import PYTHON

pytestmark = [pytest.mark.slow, pytest.mark.system]

Machines = Callable[..., Machine]
PROGRAM = "python3 -B /opt/ultracluster/current/team/users.py"
DOCUMENT, SHARED = "/team.json", "/opt/slurm/etc/ultracluster/team.json"
ADMIN = "p000"
KEY = "/etc/key"
SUDOERS = "ubuntu ALL=(ALL) NOPASSWD:ALL\n"
"""As cloud-init writes it; Systems Manager's agent writes the same of ssm-user."""


def person(number: int, **more: Any) -> dict[str, Any]:
    return {"name": f"p{number:03}", "uid": 2000 + number, "groups": ["nlp"], "ssh_keys": [], **more}


def team(count: int, **more: Any) -> dict[str, Any]:
    people = [person(number, admin=number == 0) for number in range(count)]
    return {"groups": {"nlp": 3000}, "users": people, **more}


def run(machine: Machine, document: dict[str, Any], kind: str = "head", commands: str = "") -> tuple[int, str]:
    """Apply a document, then run commands; return the exit code of the first, and what both say."""
    machine.write(DOCUMENT, json.dumps(document))
    script = f"exec 2>&1; source /image.sh; {PROGRAM} {kind} {DOCUMENT}; code=$?\n{commands}\necho $code"
    with machine.execute(["bash", "-c", script]) as process:
        output, _ = process.communicate(timeout=600)
    said, _, code = output.strip().rpartition("\n")
    return int(code), said


@pytest.fixture(scope="module")
def _machine(base: Base) -> Iterator[Machine]:
    """What images have: a default user with sudo, Systems Manager's user, ParallelCluster's."""
    machine = Machine(base, "ubuntu2404", "c6i.4xlarge", "ip-10-0-0-9")
    machine.write("/etc/sudoers.d/90-cloud-init-users", SUDOERS)
    machine.write("/etc/sudoers.d/ssm-agent-users", SUDOERS.replace("ubuntu", "ssm-user"))
    machine.write("/image.sh", 'echo "127.0.0.1 localhost ip-10-0-0-9" >/etc/hosts\n')
    machine.output_of(
        "useradd -u 1000 --create-home ubuntu; useradd -u 1001 ssm-user; useradd --system -u 400 pcluster-admin"
        f"; ssh-keygen -q -t ed25519 -N '' -f {KEY}; ssh-keygen -q -t ed25519 -N '' -f {KEY}.own; chmod 644 {KEY}*"
    )
    yield machine
    machine.discard()


@pytest.fixture
def node(_machine: Machine) -> Iterator[Machine]:
    copy = _machine.clone()
    yield copy
    copy.discard()


def states(machine: Machine) -> dict[str, str]:
    """Return everything that the machine ever wrote, but for what the test does."""
    return {
        path: state for path, state in machine.manifest().items() if path not in ("upper/etc/hosts", "upper/team.json")
    }


def test_200_people_twice_and_changed_and_gone(node: Machine) -> None:
    code, said = run(node, team(200))
    assert (code, said.count("p1")) == (0, 100)
    shown = node.output_of(
        "id p007; stat --format='%U %G %a' /home/p007 /home/p007/.bashrc; getent group nlp; ls /home | wc --lines"
    )
    everybody = ",".join(f"p{number:03}" for number in range(200))
    assert shown.splitlines() == [
        "uid=2007(p007) gid=2007(p007) groups=2007(p007),3000(nlp)",
        "p007 p007 700",
        "p007 p007 644",
        f"nlp:x:3000:{everybody}",
        "201",
    ]

    before = states(node)
    code, said = run(node, team(200), commands=f"{PROGRAM} head {DOCUMENT}")
    assert (code, said.count("users.py: NFS servers"), said.count("\n")) == (0, 2, 1), (
        "a restart forgets these rules alone"
    )
    assert states(node) == before

    conflict = {**team(200), "users": [*team(200)["users"][:-1], person(500, name="p199")]}
    before = states(node)
    code, said = run(node, conflict)
    assert code == 3
    assert "p199 has uid 2199 and gid 2199 here, and 2500 and 2500 in the document" in said
    assert states(node) == before

    code, said = run(node, team(100), commands="getent shadow p150; id p150; stat --format=%u /home/p150")
    assert code == 0
    assert "users.py: locked: p100, p101, " in said
    assert "p150:!*:" in said
    assert said.splitlines()[-2:] == ["uid=2150(p150) gid=2150(p150) groups=2150(p150)", "2150"]
    taken = {**team(100), "users": [*team(100)["users"], person(150, name="carol")]}
    assert "uid 2150 of carol is that of p150, which is locked" in run(node, taken)[1]


def test_a_home_of_somebody_else_is_no_home(node: Machine) -> None:
    node.output_of("mkdir /home/p000; chown 1000 /home/p000; ln -s /etc /home/p001")
    code, said = run(node, team(2))
    assert code == 3
    assert "/home/p000 is not a directory of uid 2000" in said
    assert "/home/p001 is not a directory of uid 2001" in said
    assert "getent" not in node.output_of("getent passwd p000 || true")


def test_a_uid_whose_home_outlived_the_head_node_is_not_given_again(node: Machine) -> None:
    node.output_of("mkdir /home/p001 /home/p001.old; chown 2001 /home/p001*")
    code, said = run(node, {**team(1), "users": [person(0), person(1, name="carol")]})
    assert (code, "users.py: failed: uid 2001 of carol is that of /home/p001" in said) == (3, True)
    assert run(node, team(2))[0] == 0, "the same person comes again"


def test_a_home_directory_that_all_may_write_becomes_roots_and_homes_are_made_where_nobody_gets(node: Machine) -> None:
    """As ParallelCluster leaves a file system of its own; FSx for OpenZFS may refuse another mode."""
    node.output_of(
        "chmod 1777 /home; mkdir /home/.p000.new; ln -s /etc /home/.p000.new/.bashrc; chown -hR ubuntu: /home/.p000.new"
    )
    code, said = run(
        node, team(1), commands="stat --format='%a %U' /home /home/p000 /home/p000/.bashrc /etc; ls -A /home"
    )
    assert code == 0, said
    assert said.splitlines()[-7:] == ["755 root", "700 p000", "644 p000", "755 root", ".p000.new", "p000", "ubuntu"]


@pytest.mark.parametrize("kind", ["head", "compute", "login"])
def test_processes_of_somebody_who_leaves_end_but_on_compute_nodes_and_jobs_are_cancelled_when_slurm_answers(
    node: Machine, kind: str
) -> None:
    """The shell of p001 has no session of logind, as those of Systems Manager's agent."""
    node.write_program("/usr/local/bin/scancel", 'echo "$*" >>/asked; [[ -e /answers ]]')
    follow = f"{PROGRAM} {kind} {DOCUMENT} --if-changed; cat /asked; rm --force /asked; pgrep --uid p001 --count"
    shell = "runuser --user p001 -- sleep 600 & until pgrep --uid p001 >/dev/null; do sleep 0.1; done"
    left = json.dumps(team(1))
    commands = f"{shell}; echo '{left}' >{DOCUMENT}; {follow}; echo {END}; {follow}; touch /answers; {follow}; {follow}"
    code, said = run(node, team(2), kind, f"exec 2>/dev/null; {commands}")
    assert code == 0, said
    first, _, others = said.partition("users.py: locked: p001")[2].partition(f"{END}\n")
    asked, not_yet = "--state=PENDING --user=p001", "users.py: jobs that wait are not cancelled yet: p001: "
    assert [line[: len(not_yet)] for line in [*first.splitlines()[-1:], *others.splitlines()]] == {
        "head": ["0", not_yet, asked, "0", asked, "0", "0"],
        "compute": ["1"] * 4,
        "login": ["0"] * 4,
    }[kind]
    assert (not_yet in first) is (kind == "head")


SSHD = "mkdir -p /run/sshd; ssh-keygen -A >/dev/null; /usr/sbin/sshd"
# sshd goes to the background before it listens: the client tries again, each second.
OPTIONS = "-o ConnectionAttempts=60 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
SSH = f"ssh {OPTIONS} -o LogLevel=ERROR -o BatchMode=yes"


def test_people_log_in_by_their_keys_until_these_are_taken_away(node: Machine) -> None:
    """By Debian's sshd. The key that a person added stays until the account is locked."""
    public = node.read(f"{KEY}.pub").strip()
    login = f"cp {KEY} {KEY}.own /root; chmod 600 /root/key*; {SSHD}; {SSH} -i /root/key p001@localhost id -un"
    own = f"{SSH} -i /root/key.own p001@localhost id -un"
    with_key = {**team(1), "users": [person(0), person(1, ssh_keys=[public])]}
    add = f"mkdir /home/p001/.ssh; cp {KEY}.own.pub /home/p001/.ssh/authorized_keys; chown -R p001: /home/p001/.ssh"
    code, said = run(node, with_key, commands=f"{add}; {login}; {own}")
    assert (code, said.splitlines()[-2:]) == (0, ["p001", "p001"])

    code, said = run(node, team(2), commands=f"{login}; {own}")
    assert said.splitlines()[-2:] == ["p001@localhost: Permission denied (publickey,password).", "p001"]

    code, said = run(node, team(1), commands=f"{login}; {own}")
    assert [line for line in said.splitlines() if "p001" in line][-1].startswith(("p001@localhost: ", "Connection "))
    assert "p001" not in said.splitlines()

    code, said = run(node, with_key, commands=login)
    assert said.splitlines()[-1] == "p001"


def test_only_admins_and_the_default_user_log_in_to_a_compute_node(node: Machine) -> None:
    """Also with a key in a home, which all nodes share. Others would work there beside jobs."""
    public = node.read(f"{KEY}.pub").strip()
    people = {**team(1), "users": [person(0, admin=True, ssh_keys=[public]), person(1, ssh_keys=[public])]}
    homes = "; ".join(
        f"mkdir -p /home/{name}/.ssh; cp {KEY}.own.pub /home/{name}/.ssh/authorized_keys; chown -R {name}: /home/{name}"
        for name in ("ubuntu", "p000", "p001")
    )
    logins = "; ".join(
        f"{SSH} -i /root/{key} {name}@localhost id -un"
        for key, name in (("key", "p000"), ("key.own", "ubuntu"), ("key", "p001"), ("key.own", "p001"))
    )
    login = f"cp {KEY} {KEY}.own /root; chmod 600 /root/key*; {SSHD}; {logins}"
    refused = "p001@localhost: Permission denied (publickey,password)."
    code, said = run(node, people, "compute", f"{homes}; {login}")
    assert (code, said.splitlines()[-4:]) == (0, ["p000", "ubuntu", refused, refused])
    assert run(node, people, "login", login)[1].splitlines()[-2:] == ["p001", "p001"]


def test_sudo_is_for_admins_and_again_for_the_default_user_when_nobody_is_left(node: Machine) -> None:
    who = "; ".join(
        f"runuser --user {name} -- sudo --non-interactive id --user --name"
        for name in ("ubuntu", "ssm-user", ADMIN, "p001")
    )
    refused = "sudo: a password is required"
    code, said = run(node, team(2), commands=who)
    assert (code, said.splitlines()[-4:]) == (0, [refused, refused, "root", refused])
    assert run(node, {}, commands=who)[1].splitlines()[-4:] == ["root", "root", refused, refused]


def test_only_the_system_reaches_the_metadata_service_of_a_compute_node(node: Machine) -> None:
    """By a real iptables, on the loopback of this machine, which has the address."""
    connects = "(exec 3<>/dev/tcp/169.254.169.254/80) 2>/dev/null"
    ask = "; ".join(
        f"runuser --user {name} -- timeout 0.5 bash -c '{connects}'; echo {name} $?"
        for name in ("root", "pcluster-admin", "ubuntu", "p000", "p001")
    )
    listens = "python3 -m http.server 80 --bind 169.254.169.254 &>/dev/null"
    server = f"{listens} & until {connects}; do sleep 0.1; done"
    code, said = run(node, team(2), "compute", f"{server}; {ask}")
    assert (code, said.splitlines()[-5:]) == (0, ["root 0", "pcluster-admin 0", "ubuntu 124", "p000 124", "p001 124"])

    again = f"{PROGRAM} compute {DOCUMENT} --if-changed"
    code, said = run(node, team(2), "login", f"{server}; {again}; {again}; rm {DOCUMENT}; {again}; {ask}; ip6tables -S")
    assert code == 0
    assert said.count("169.254.169.254/32 is closed") == 1, "a restart forgets the rules, a second run has them"
    assert "p001 124" in said
    assert "-A ULTRACLUSTER_IMDS -j REJECT --reject-with icmp6-port-unreachable" in said
    assert "-A OUTPUT -d fd00:ec2::254/128 -j ULTRACLUSTER_IMDS" in said

    opened = f"echo '{{}}' >{DOCUMENT}; {again}"
    code, said = run(node, team(2), "compute", f"{server}; {opened}; {ask}; iptables -S")
    assert "169.254.169.254/32 is open again" in said
    assert "p001 0" in said
    assert "ULTRACLUSTER" not in said.partition("open again")[2]


@pytest.mark.parametrize("kind", ["head", "compute", "login"])
def test_only_root_reaches_nfs_servers_and_the_tunnels_to_them(node: Machine, kind: str) -> None:
    """These believe a client of a user's own that it is root. Another port of the node stays open.

    The tunnels' ports are those of the node's own efs-utils, of whatever version.
    """
    ports = (2049, 30049, 31049, 31050)
    bounds = "[mount]\nport_range_lower_bound = 30049\nport_range_upper_bound = 31049\n"
    node.write("/etc/amazon/efs/efs-utils.conf", f"[DEFAULT]\nlogging_level = %INFO\n\n{bounds}")
    listen = "; ".join(
        f"timeout 60 python3 -m http.server {port} --bind 127.0.0.1 &>/dev/null & "
        f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done"
        for port in ports
    )
    udp = "python3 -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(bytes(1), (\"127.0.0.1\", 2049))'"
    connect = "timeout 3 bash -c '(exec 3<>/dev/tcp/127.0.0.1/{0}) 2>/dev/null'"
    ask = "; ".join(
        f"runuser --user {name} -- {connect.format(port)} && echo {name} {port}"
        for name in ("root", "ubuntu", "p000", "p001")
        for port in ports
    )
    nobody = f"echo '{{}}' >{DOCUMENT}; {PROGRAM} {kind} {DOCUMENT}; iptables -S; ip6tables -S"
    code, said = run(node, team(2), kind, f"{listen}; {ask}; {udp} && runuser --user p001 -- {udp}; {nobody}")
    assert code == 0, said
    reached = [line for line in said.splitlines() if line.startswith(("root", "ubuntu", "p0"))]
    assert reached == [*(f"root {port}" for port in ports), "ubuntu 31050", "p000 31050", "p001 31050"]
    assert said.count("PermissionError") == 1
    assert "ULTRACLUSTER" not in said.rpartition("open again")[2], "without users all is open"
    node.write("/etc/amazon/efs/efs-utils.conf", bounds.replace("31049", "many"))
    code, said = run(node, team(2), kind)
    assert (code, "does not say on which ports tunnels to EFS listen" in said) == (1, True)


def after_restart(machine: Machine) -> str:
    """Return the rules of the firewall before the node's service follows the document, and it lets people in."""
    unit = machine.read("/etc/systemd/system/ultracluster-team.service").splitlines()
    before = {each for line in unit if line.startswith("Before=") for each in line.partition("=")[2].split()}
    assert {"slurmd.service", "ssh.service", "cron.service", "systemd-user-sessions.service"} <= before
    assert {"amazon-ssm-agent.service", "snap.amazon-ssm-agent.amazon-ssm-agent.service"} <= before
    assert "After=parallelcluster-iptables.service" in unit, "which drops all rules but its own"
    [first] = [line.partition("=-")[2] for line in unit if line.startswith("ExecStartPre=")]
    return machine.output_of(f"{first} >/dev/null; iptables -S")


END = "---"
FETCH = "[[ $* == *' s3://bucket/team.json '* ]] && cp /fetched.json \"${@: -1}\""


def test_the_head_node_shares_the_document_that_the_others_follow(machine: Machines) -> None:
    """By their scripts. The second run changes nothing; a document of contradictions reaches nobody."""
    head = machine("ubuntu2404", "c6i.4xlarge", "ip-10-0-0-9")
    head.write_program("/usr/local/bin/aws", FETCH)
    facts = HEAD_NODE | {"python": PYTHON, "team": "s3://bucket/team.json"}
    head.write("/fetched.json", json.dumps(team(2)))
    outcome = head.run("head_node.sh", facts)
    assert outcome.code == 0, outcome.output
    assert "users.py: new: p000, p001" in outcome.output
    unit = head.read("/etc/systemd/system/ultracluster-software.service")
    assert "team=" not in unit
    hook = head.read("/opt/slurm/etc/scripts/prolog.d/40_ultracluster_team")

    outcome = head.run("head_node.sh", facts)
    assert "wrote" not in outcome.output

    shared = head.read(SHARED)
    head.write("/fetched.json", json.dumps({"users": [person(5, name="p000")]}))
    outcome = head.run("head_node.sh", facts)
    assert (outcome.code, head.read(SHARED)) == (25, shared)
    assert "p000 has uid 2000" in outcome.output
    head.write("/fetched.json", json.dumps(team(3)))
    assert head.run("head_node.sh", facts).code == 0

    for kind, script, given in (("compute", "compute_node.sh", COMPUTE_NODE), ("login", "login_node.sh", LOGIN_NODE)):
        other = machine("ubuntu2404")
        other.write(SHARED, shared)
        other.write_program("/opt/slurm/etc/scripts/prolog.d/40_ultracluster_team", hook.partition("\n")[2])
        outcome = other.run(script, given)
        assert outcome.code == 0, outcome.output
        assert "users.py: new: p000, p001" in outcome.output
        assert other.output_of("id -u p001; ls /home").splitlines() == ["2001"]
        follow = other.read("/etc/systemd/system/ultracluster-team.service")
        command = next(line.partition("=")[2] for line in follow.splitlines() if line.startswith("ExecStart="))
        assert command.endswith(f"/team/follow.sh {kind} {SHARED}")
        other.write(SHARED, head.read(SHARED))
        follows = f"{command} &>/dev/null & until id -u p002 2>/dev/null; do sleep 0.1; done"
        assert other.output_of(follows).splitlines()[-1] == "2002"
        other.remove(SHARED)
        assert "REJECT" in after_restart(other), "before the shared file system is there"

    assert "REJECT" in after_restart(head)

    assert head.run("head_node.sh", HEAD_NODE | {"python": PYTHON}).code == 0
    assert json.loads(head.read(SHARED)) == {}
    assert "p000:!*:" in head.output_of("getent shadow p000")


def test_the_prolog_fails_only_where_a_job_would_get_the_nodes_credentials(machine: Machines, node: Machine) -> None:
    head = machine("ubuntu2404", "c6i.4xlarge", "ip-10-0-0-9")
    head.write_program("/usr/local/bin/aws", FETCH)
    head.write("/fetched.json", json.dumps(team(1)))
    assert head.run("head_node.sh", HEAD_NODE | {"python": PYTHON, "team": "s3://bucket/team.json"}).code == 0
    hook = head.read("/opt/slurm/etc/scripts/prolog.d/40_ultracluster_team").partition("\n")[2]
    node.write_program("/prolog", hook)
    node.write(SHARED, json.dumps({"users": [{"name": "ubuntu", "uid": 2000}]}))
    assert node.output_of("/prolog >/said; echo $?; grep --count 'failed: ubuntu has uid 1000' /said") == "0\n1\n"
    hidden = "mv /usr/sbin/iptables /usr/sbin/hidden; /prolog; echo $?"
    assert node.output_of(hidden).splitlines() == [
        "users.py: failed: iptables is missing, so users would reach the node's credentials and homes",
        "1",
    ]
