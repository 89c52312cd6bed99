"""People in a settings file, or in a file of their own beside it."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.files import copy, deployments
from config.settings import SettingsError, load
from tests.config.settings_files import GOOD, NOT_YET, RESOURCE, message
from ultracluster.domain.team import AccountSpec, QosSpec, TeamSpec, UserSpec


def key(kind: str, *parts: bytes, claimed: str = "") -> str:
    """Return a public key of some parts, of the type that it has or claims."""
    content = b"".join(struct.pack(">I", len(each)) + each for each in (kind.encode(), *parts))
    return f"{claimed or kind} {base64.b64encode(content).decode()} somebody@example.com"


def rsa(bits: int) -> str:
    number = (1 << (bits - 1)) + 1
    return key("ssh-rsa", b"\1\0\1", number.to_bytes(bits // 8 + 1, "big"))


ED25519 = key("ssh-ed25519", bytes(32))
KEYS = [
    ED25519,
    rsa(2048),
    key("ecdsa-sha2-nistp256", b"nistp256", bytes(65)),
    key("ecdsa-sha2-nistp521", b"nistp521", bytes(133)),
    key("sk-ssh-ed25519@openssh.com", bytes(32), b"ssh:"),
    key("sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", bytes(65), b"ssh:"),
]
HOMES = {"type": "fsx-openzfs", "openzfs": {"quota_gib_per_user": 100}}
ALICE = {"name": "alice", "uid": 2001}
BOB = {"name": "bob", "uid": 2002}


def write(directory: Path, people: Any, text: str = GOOD) -> Path:
    """Write a settings file, and one of people beside it."""
    path = directory / "settings.yaml"
    path.write_text(f"users: my-users.yaml\n{text}", encoding="utf-8")
    (directory / "my-users.yaml").write_text(yaml.safe_dump(people, sort_keys=False), encoding="utf-8")
    return path


def reported(path: Path) -> str:
    with pytest.raises(SettingsError) as error:
        load(path)
    lines = str(error.value).replace(f"{path.parent}/", "").splitlines()
    return "\n".join(line for line in lines if NOT_YET not in line)


def test_200_people_may_have_a_file_of_their_own(tmp_path: Path) -> None:
    people = [{"name": f"p{n}", "uid": 2000 + n, "groups": ["nlp"], "ssh_keys": [*KEYS]} for n in range(200)]
    path = write(tmp_path, {"groups": {"nlp": 3000}, "users": people})
    settings = load(path)
    assert settings.team is not None
    assert settings.team.document().count('"uid"') == 200
    assert deployments(tmp_path) == ["settings"]


def test_who_names_accounts_or_qos_has_accounting() -> None:
    """The nodes ask for it alone before they tell Slurm."""
    for team, expected in (
        (TeamSpec(users=[UserSpec(name="alice", uid=2001)]), False),
        (TeamSpec(users=[UserSpec(name="alice", uid=2001, account="lab")]), True),
        (TeamSpec(accounts=[AccountSpec(name="lab")]), True),
        (TeamSpec(qos=[QosSpec(name="urgent")]), True),
        (TeamSpec(accounting=True), True),
    ):
        assert json.loads(team.document())["accounting"] is expected


VIOLATIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"users": [ALICE, {**BOB, "name": "alice"}]}, "users[1].name", "a name of its own"),
    ({"users": [ALICE, {**BOB, "uid": 2001}]}, "users[1].uid", "an id of its own (alice has it)"),
    ({"users": [{**ALICE, "gid": 2002}, BOB]}, "users[1].uid", "an id that no group has (that of alice has it)"),
    ({"groups": {"nlp": 2001}, "users": [ALICE]}, "users[0].uid", "an id that no group has (group nlp has it)"),
    ({"groups": {"nlp": 3000}, "users": [{**ALICE, "gid": 3000}]}, "users[0].gid", "an id that no group has"),
    ({"groups": {"nlp": 3000, "cv": 3000}}, "groups.cv", "an id of its own (nlp has it)"),
    ({"groups": {"alice": 3000}, "users": [ALICE]}, "groups.alice", "another name (each user has a group"),
    ({"groups": {"docker": 3000}}, "groups.docker", "another name (images have"),
    ({"users": [{**ALICE, "groups": ["nlp"]}]}, "users[0].groups[0]", "none, as there are no groups"),
    ({"groups": {"cv": 3000}, "users": [{**ALICE, "groups": ["nlp"]}]}, "users[0].groups[0]", "allowed: cv"),
    ({"users": [{**ALICE, "account": "nlp"}]}, "users[0].account", "null, or accounting with that account (acc"),
    *[
        ({"users": [{**ALICE, "name": name}]}, "users[0].name", "another name (images have")
        for name in ("root", "ubuntu", "ec2-user", "slurm", "munge", "pcluster-admin", "ssm-user", "nobody", "dcv")
    ],
    *[({"users": [{**ALICE, "uid": uid}]}, "users[0].uid", "at least|greater than or equal") for uid in (0, 400, 1999)],
    ({"users": [{**ALICE, "uid": 65534}]}, "users[0].uid", "less than or equal"),
]


@pytest.mark.parametrize(("people", "place", "allowed"), VIOLATIONS)
def test_a_rule_that_is_broken_is_told_at_its_line(
    tmp_path: Path, people: dict[str, Any], place: str, allowed: str
) -> None:
    path = write(tmp_path, people)
    [line] = reported(path).splitlines()
    name, number, rest = line.split(":", 2)
    told, _, text = rest.strip().partition(": ")
    assert (name, told) == ("my-users.yaml", place)
    assert any(each in text for each in allowed.split("|"))
    below = place.rpartition(".")[2].partition("[")[0]
    at = (tmp_path / name).read_text(encoding="utf-8").splitlines()[int(number) - 1]
    assert below in at or at.strip().startswith("- ")


@pytest.mark.parametrize("line", KEYS)
def test_a_public_key_is_accepted(tmp_path: Path, line: str) -> None:
    assert load(write(tmp_path, {"users": [{**ALICE, "ssh_keys": [line]}]})).users[0].ssh_keys == [line]


BAD_KEYS = [
    ("alice@example.com", "no type of key first: ssh-ed25519, "),
    ("ssh-dss AAAA", "no type of key first"),
    ("ssh-ed25519", "not complete"),
    (ED25519.replace("AAAA", "AA!A", 1), "not complete"),
    (ED25519[:60], "not complete"),
    (key("ssh-rsa", b"\3", bytes(257), claimed="ssh-ed25519"), "a key of the type 'ssh-rsa', not ssh-ed25519"),
    (key("ssh-ed25519", bytes(31)), "not the numbers of a ssh-ed25519 key"),
    (key("ssh-ed25519", bytes(32), b"more"), "not the numbers of a ssh-ed25519 key"),
    (key("ecdsa-sha2-nistp256", b"nistp384", bytes(65)), "not the numbers"),
    (key("sk-ssh-ed25519@openssh.com"), "not the numbers"),
    (rsa(1024), "an RSA key of 1024 bits; 2048 are the least"),
    (key("ssh-rsa", b"\3"), "not the numbers of a ssh-rsa key"),
    (f'command="id" {ED25519}', "options before the key"),
    (f"{ED25519}\nssh-ed25519 x", "more than one line"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_KEYS)
def test_what_is_no_public_key_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    text = reported(write(tmp_path, {"users": [{**ALICE, "ssh_keys": [line]}]}))
    assert "users[0].ssh_keys[0]: got " in text
    assert reason in text


def test_a_private_key_is_not_repeated(tmp_path: Path) -> None:
    text_of_key = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n"
    text = reported(write(tmp_path, {"users": [{**ALICE, "ssh_keys": [text_of_key]}]}))
    assert "replace it by a new one" in text
    assert "c2VjcmV0" not in text


def test_everything_that_is_wrong_is_told_at_once_in_both_files(tmp_path: Path) -> None:
    people = [{**ALICE, "uid": 5, "name": "root"}, {**BOB, "uid": 2003}, {**BOB, "uid": 2003}, {"name": "x y"}]
    text = reported(write(tmp_path, {"users": people}, GOOD.replace("max_count: 16", "max_count: 0")))
    assert [line.split(": ")[0:2] for line in text.splitlines()] == [
        ["settings.yaml:31", "cluster.queues[0].compute_resources[0].max_count"],
        ["my-users.yaml:2", "users[0].name"],
        ["my-users.yaml:3", "users[0].uid"],
        ["my-users.yaml:6", "users[2].name"],
        ["my-users.yaml:7", "users[2].uid"],
        ["my-users.yaml:8", "users[3].name"],
        ["my-users.yaml:8", "users[3].uid"],
    ]


def test_a_wrong_value_hides_nothing_else_about_people_accounts_and_money(tmp_path: Path) -> None:
    """What a wrong name may be meant for is not said to be missing: d's parent, the group and Carl's account."""
    text = GOOD + yaml.safe_dump(
        {
            "accounting": {
                "accounts": [
                    {"name": "a", "parent": "b", "share": "x"},
                    {"name": "b", "parent": "a"},
                    {"named": "c"},
                    {"name": "d", "parent": "c", "max_hours": 24, "node_hours_per_month": 5},
                ],
                "existing": {"host": "x", "user": "x", "password_secret_arn": "x", "security_group_id": "sg-01234567"},
                "database": {"storage_gib": 30},
            },
            "budget": {"monthly_usd": 3, "emails": ["a@example.com", "bad"]},
        },
        sort_keys=False,
    )
    people = [
        {**ALICE, "key": "x"},
        {**BOB, "uid": 2001, "groups": ["nlp"]},
        {"name": "carl", "uid": 1, "account": "c"},
    ]
    path = write(tmp_path, {"people": [], "groups": {"nlp": 5}, "users": people}, text)

    found = [tuple(line.split(": ", 2)[1:]) for line in reported(path).splitlines()]

    assert [place for place, _ in found] == [
        "people",
        "accounting.accounts[0].share",
        "accounting.accounts[2].name",
        "accounting.accounts[2].named",
        "accounting.accounts[3].node_hours_per_month",
        "accounting.existing.password_secret_arn",
        "accounting.database.storage_gib",
        "budget.monthly_usd",
        "budget.emails[1]",
        "groups.nlp",
        "users[0].key",
        "users[1].uid",
        "users[2].uid",
    ]


@pytest.mark.parametrize(
    ("values", "people", "places"),
    [
        ({"acounting": {"accounts": [{"name": "c"}]}}, {"users": [{**ALICE, "account": "c"}]}, ["acounting"]),
        ({"accounting": 5}, {"users": [{**ALICE, "account": "c"}]}, ["accounting"]),
        ({"accounting": {"qqqq": []}}, {"users": [{**ALICE, "account": "c"}]}, ["accounting.qqqq"]),
        ({"qqqq": {"nlp": 3000}}, {"users": [{**ALICE, "groups": ["nlp"]}]}, ["qqqq"]),
        ({"budget": {"monthly_usd": 9000}, "monitorings": {}}, {}, ["monitorings"]),
        ({"accounting": {"existing": 5, "database": {"storage_gib": 30}}}, {}, ["accounting.existing"]),
        ({"homes": HOMES}, {"user": []}, ["user"]),
        ({"homes": HOMES}, {"users": [5]}, ["users[0]"]),
        ({"homes": {**HOMES, "openzfs": {"deployment_type": "SINGLE", "throughput_mbps": 160}}}, {},
         ["homes.openzfs.deployment_type"]),
    ],
    ids=range(9),
)  # fmt: skip
def test_a_default_in_the_place_of_a_wrong_value_is_not_blamed(
    tmp_path: Path, values: dict[str, Any], people: Any, places: list[str]
) -> None:
    path = write(tmp_path, people, GOOD.replace("monitoring: {}\n", "") + yaml.safe_dump(values))
    assert [line.split(": ", 2)[1] for line in reported(path).splitlines()] == places


def test_groups_in_the_settings_are_told_there(tmp_path: Path) -> None:
    text = reported(write(tmp_path, {"users": []}, f"{GOOD}groups: {{nlp: abc}}\n"))
    assert [line.split(":")[:2] for line in text.splitlines()] == [["settings.yaml", "35"], ["settings.yaml", "35"]]


def test_what_cannot_be_checked_yet_is_said(tmp_path: Path) -> None:
    sections = "region and zone_id"
    for region in ("region: us-west2", "regionx: us-west-2"):
        path = write(tmp_path, {"users": []}, GOOD.replace("region: us-west-2", region))
        assert message(path)[-1] == f"{path}{NOT_YET}{sections} are checked yet; correct the values above first"


FILES = [
    ("users: other.yaml\n", {}, "settings.yaml:1: users: got 'other.yaml'; allowed: a list, or the name of a file"),
    ("users: ../users.yaml\n", {}, "settings.yaml:1: users: got '../users.yaml'; allowed: a list, or the name of"),
    ("users: users.yaml\n", {}, "settings.yaml:1: users: got 'users.yaml'; there is no users.yaml"),
    ("users: users.yaml\n", {"users.yaml": "users: [\n"}, "users.yaml:2: not YAML: "),
    ("users: users.yaml\n", {"users.yaml": "- alice\n"}, "users.yaml:1: (file): got ['alice']; should be a mapping"),
    ("users: users.yaml\n", {"users.yaml": "user: []\n"}, "users.yaml:1: user: unknown key; allowed: groups, users"),
    ("users: users.yaml\ngroups: {}\n", {"users.yaml": ""}, "settings.yaml:2: groups: given, though users.yaml has"),
]


@pytest.mark.parametrize(("head", "files", "message"), FILES)
def test_a_file_of_people_that_cannot_be_used(tmp_path: Path, head: str, files: dict[str, str], message: str) -> None:
    for name, text in {**files, "settings.yaml": f"{head}{GOOD}"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert reported(tmp_path / "settings.yaml").startswith(message)


def test_a_file_of_people_that_is_missing_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("users: users.yaml\n" + GOOD.replace("max_count: 16", "max_count: 0"), encoding="utf-8")
    assert [line.split(": ")[1] for line in reported(path).splitlines()] == ["users", f"{RESOURCE}.max_count"]


def test_people_may_stand_in_the_settings_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(f"{GOOD}users: [{{name: alice, uid: 5}}]\n", encoding="utf-8")
    assert reported(path).startswith("settings.yaml:34: users[0].uid: got 5; should be greater than or equal to 2000")


def test_a_copy_of_a_settings_file_takes_its_people_along(tmp_path: Path) -> None:
    path, target = write(tmp_path, {"users": [ALICE]}), tmp_path / "elsewhere" / "trial.yaml"
    target.parent.mkdir()
    copy(path, target)
    assert load(target).users == load(path).users
