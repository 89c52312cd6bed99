"""What team/users.py decides of a document and of what a node has, where tests with real programs do not show it."""

from __future__ import annotations

import pytest

from nodes.team.users import Account, Group, Person, System, Team, commands, contradictions, sudoers

ALICE, BOB = Person("alice", 2001, 2001, ("nlp",), admin=True), Person("bob", 2002, 3002)
TEAM = Team({"nlp": 3000}, (ALICE, BOB))
IMAGE = System({"root": Account(0, 0), "ubuntu": Account(1000, 1000)}, {"root": Group(0), "ubuntu": Group(1000)})
DONE = System(
    {**IMAGE.accounts, "alice": Account(2001, 2001), "bob": Account(2002, 3002)},
    {**IMAGE.groups, "nlp": Group(3000, frozenset({"alice"})), "alice": Group(2001), "bob": Group(3002)},
)


def after(team: Team, system: System) -> list[str]:
    """Return the commands on a node that knows alice, bob and nlp."""
    return [" ".join(each) for each in commands(team, system, ("alice", "bob"), ("nlp",))]


def test_people_of_a_new_node() -> None:
    created = "--shell /bin/bash --no-log-init --password *"
    assert after(TEAM, IMAGE) == [
        "groupadd --gid 3000 nlp",
        "groupadd --gid 2001 alice",
        "groupadd --gid 3002 bob",
        f"useradd --uid 2001 --gid 2001 --no-create-home --home-dir /home/alice {created} alice",
        f"useradd --uid 2002 --gid 3002 --no-create-home --home-dir /home/bob {created} bob",
        "gpasswd --members alice nlp",
    ]
    assert after(TEAM, DONE) == []


def test_who_is_no_longer_there_is_locked_once_and_leaves_the_groups_and_may_come_back() -> None:
    gone = Team({"nlp": 3000}, (BOB,))
    assert after(gone, DONE) == ["usermod --lock --expiredate 1 alice", "gpasswd --members  nlp"]
    accounts = {**DONE.accounts, "alice": Account(2001, 2001, is_locked=True)}
    locked = System(accounts, {**DONE.groups, "nlp": Group(3000)})
    assert after(gone, locked) == []
    assert after(TEAM, locked) == ["usermod --expiredate  --password * alice", "gpasswd --members alice nlp"]


def test_a_group_that_is_gone_loses_its_people_but_nobody_whom_an_administrator_added() -> None:
    system = System(DONE.accounts, {**DONE.groups, "nlp": Group(3000, frozenset({"alice", "ubuntu"}))})
    assert after(Team({}, (Person("alice", 2001, 2001), BOB)), system) == ["gpasswd --members ubuntu nlp"]


CONTRADICTIONS = [
    (Person("alice", 2001, 2005), "alice has uid 2001 and gid 2001 here, and 2001 and 2005 in the document"),
    (Person("carol", 2001, 2005), "uid 2001 of carol is that of alice; take another one"),
    (Person("carol", 2005, 3000), "gid 3000 of group carol is that of nlp"),
    (Person("ubuntu", 2005, 1000), "ubuntu has uid 1000 and gid 1000 here"),
]


@pytest.mark.parametrize(("person", "message"), CONTRADICTIONS)
def test_what_contradicts_the_node_is_told(person: Person, message: str) -> None:
    told = list(contradictions(Team({}, (person,)), DONE))
    assert any(each.startswith(message) for each in told), told
    assert list(contradictions(TEAM, DONE)) == []


def test_a_group_with_another_id_is_told() -> None:
    assert list(contradictions(Team({"nlp": 3009}), DONE)) == ["group nlp has gid 3000 here, and 3009 in the document"]


def test_the_default_user_of_amazon_linux_has_no_sudo_either() -> None:
    assert "ec2-user ALL=(ALL:ALL) !ALL" in sudoers(TEAM).splitlines()
