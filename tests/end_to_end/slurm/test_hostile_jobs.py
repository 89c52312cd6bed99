"""A real Slurm with what a hostile user submits: what this project's programs say of it, what runs, and as whom."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.account.remote import program
from scripts.account.remote.head_node import OUTPUT_LIMIT
from scripts.account.slurm import COMMAND, parse
from scripts.watch.logs.jobs import MOST_NODES, KnownJob
from tests.end_to_end.slurm.base import USER, ClusterError
from tests.end_to_end.slurm.controller import SETTINGS, Controller

pytestmark = [pytest.mark.slow, pytest.mark.system]

FORGED = "x\n   UserId=--shell=/home/evil(0) GroupId=x\n   UserId=root(0) GroupId=root(0)"
NAMES = (
    "[/bold]", "[link=http://evil.example]x[/link]", "\x1b]52;c;eA==\x07\x1b[2J", "\u202e\x9b31m", "--shell=/bin/sh",
    "a|b|c", "'; id; \"", "$(id)`id`", "{{ssm:token}}", FORGED, "j" * 1000,
)  # fmt: skip
"""Of jobs, comments, directories and output files. Slurm takes no more than about 1,000 characters."""
CUT = {"jobs": 40, "reasons": 120}


@pytest.fixture(scope="module")
def controller(slurm_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with Controller(slurm_workspace / "base", tmp_path_factory.mktemp("hostile"), SETTINGS["this stack's"]) as started:
        yield started


def submit(controller: Controller, name: str, *options: str) -> str:
    """Submit a job that never starts, whose texts have a name, and return its number."""
    words = ["sbatch", "--parsable", "--hold", f"--job-name={name}", f"--comment={name}", *options, "--wrap=true"]
    return controller.run(shlex.join(words), user=USER).strip()


def known(controller: Controller, number: str) -> KnownJob:
    command = program.words("jobs", "job", number, str(MOST_NODES))
    return program.read(controller.run(shlex.join(command)), "job", KnownJob)


def test_no_text_of_a_job_makes_another_user_of_it(controller: Controller) -> None:
    numbers = {name: submit(controller, name, "--output=/tmp/%j.out") for name in NAMES}
    directory = f"/tmp/d\n   UserId=root(0)"  # noqa: F541, S108
    controller.run(f"mkdir -p {shlex.quote(directory)}", user=USER)
    numbers["directory"] = submit(controller, "a", f"--chdir={directory}", f"--output={directory}/out")
    for name, number in numbers.items():
        job = known(controller, number)
        assert (job.number, job.user, job.state, job.nodes) == (number, USER, "PENDING", {}), name

    text = controller.run(shlex.join(COMMAND))
    state = parse(text)
    assert [each.user for each in state.jobs] == [USER] * len(numbers)
    assert {str(each.number) for each in state.jobs} == set(numbers.values())
    assert state.waiting_jobs == len(numbers)
    assert len(text) < OUTPUT_LIMIT
    assert all(len(each.name) <= CUT["jobs"] and "\n" not in each.name for each in state.jobs)


def test_reasons_of_drained_nodes_stay_reasons(controller: Controller) -> None:
    for number, reason in enumerate(NAMES, start=1):
        node = f"trn1-dy-trn1-32xl-{number}"
        controller.run(f"scontrol update nodename={node} state=drain reason={shlex.quote(reason)}")
    text = controller.run(shlex.join(COMMAND))
    state = parse(text)
    assert {each.nodes for each in state.problems} == {f"trn1-dy-trn1-32xl-{n}" for n in range(1, len(NAMES) + 1)}
    assert all(each.state.startswith("drained") for each in state.problems)
    assert all(len(each.reason) <= CUT["reasons"] and "\n" not in each.reason for each in state.problems)
    assert len(text) < OUTPUT_LIMIT


def test_the_output_of_a_job_is_read_as_its_user_who_put_something_else_in_its_place(controller: Controller) -> None:
    """As `jobs logs` does, by the real runuser: no shell of the user's starts, no link, pipe or device is opened."""
    places = {
        "link": "ln --symbolic --force /etc/shadow {}",
        "pipe": "rm --force {0}; mkfifo {0}",
        "endless": "ln --symbolic --force /dev/zero {}",
        "roots": "ln --force --symbolic /var/log/slurm/slurmctld.log {}",
    }
    profile = "echo id >>/tmp/profile; id >>/tmp/profile"
    controller.run(f"echo {shlex.quote(profile)} >>$HOME/.profile; cp $HOME/.profile $HOME/.bash_profile", user=USER)
    for name, place in places.items():
        path = f"/tmp/{name}.out"  # noqa: S108
        number = submit(controller, "a", f"--output={path}")
        controller.run(place.format(path), user=USER)
        job = known(controller, number)
        assert (job.user, job.output) == (USER, path)
        with pytest.raises(ClusterError) as refused:
            controller.run(shlex.join(program.as_user(job.user, program.words("files", "tail", job.output, "100"))))
        said = str(refused.value).splitlines()[-1]
        assert said in (f"Too many levels of symbolic links: {path}", f"{path}: not a regular file")
    for name in NAMES[:-1]:
        path = f"/tmp/{name.replace('/', '')}.out"  # noqa: S108
        number = submit(controller, "a", f"--output={path.replace('%', '%%')}")
        controller.run(f"id --user --name >{shlex.quote(path)}", user=USER)
        job = known(controller, number)
        read = program.as_user(job.user, program.words("files", "tail", job.output, "100"))
        assert controller.run(shlex.join(read)) == f"{USER}\n", name
    with pytest.raises(ClusterError, match="profile"):
        controller.run("cat /tmp/profile")


def test_what_health_checks_say_of_a_node_outlives_its_replacement(controller: Controller) -> None:
    """By its comment the head node counts it, not by the log, into which users have lines written."""
    node, mark = "trn1-dy-trn1-32xl-1800", "ultracluster: drained at 1800000000"
    controller.run(f"scontrol update nodename={node} state=drain reason=x comment={shlex.quote(mark)}")
    for state in ("down reason='Scheduler health check failed'", "power_down_force", "resume", "power_up"):
        controller.run(f"scontrol update nodename={node} state={state}")
    shown = controller.run(f"sinfo --all --Node --noheader --nodes={node} --Format=NodeList:64,Comment:64")
    assert shown.split(maxsplit=1)[1].strip() == mark
    with pytest.raises(ClusterError, match=r"denied|Invalid user"):
        controller.run(f"scontrol update nodename={node} comment=x", user=USER)
