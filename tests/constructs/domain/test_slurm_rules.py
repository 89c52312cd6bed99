"""Slurm's parameters: names, values and lines that its parser refuses, by the tables of its source."""

from __future__ import annotations

import pytest

from tests.constructs.domain.specs import cluster
from ultracluster.domain import cluster_rules, slurm_parameters, slurm_rules
from ultracluster.domain.cluster import SlurmSpec
from ultracluster.domain.parallelcluster_versions import PINNED
from ultracluster.domain.slurm_rules import CLUSTER, COMPUTE_RESOURCE, QUEUE, Line
from ultracluster.domain.violations import Violation

LINES = {"cluster": CLUSTER, "queue": QUEUE, "compute resource": COMPUTE_RESOURCE}
VALUES = {"boolean": "YES", "uint16": "5", "uint32": "64k", "uint64": "UNLIMITED", "text": "x"}
WORDS = {
    "DefaultTime": "1-12:30:00",
    "MaxTime": "INFINITE",
    "PriorityCalcPeriod": "5",
    "PriorityDecayHalfLife": "7-0",
    "PriorityMaxAge": "14-0",
    "SlurmctldDebug": "debug2",
    "SlurmctldSyslogDebug": "quiet",
    "SlurmdDebug": "3",
    "SlurmdSyslogDebug": "INFO",
    "EnforcePartLimits": "ALL",
    "PreemptMode": "SUSPEND,GANG",
    "PriorityUsageResetPeriod": "WEEKLY",
}
"""Values where the parser does not take any text."""


def refused(line: Line, **settings: object) -> list[Violation]:
    return list(slurm_rules.violations(settings, line))


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_each_parameter_with_a_value_of_its_kind_is_accepted_in_any_case(line: Line) -> None:
    assert len(line.parameters) > 20
    for name, kind in line.parameters.items():
        if name.lower() not in line.reserved:
            value = WORDS.get(name, VALUES[kind])
            assert refused(line, **{name: value}) == refused(line, **{name.upper(): value}) == [], name


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_no_parameter_takes_what_is_not_of_its_kind_or_does_not_stay_on_its_line(line: Line) -> None:
    for name, kind in line.parameters.items():
        if name.lower() in line.reserved:
            continue
        wrong = ["", "a b", 'a"b c"', "a#b", "a\\", "a\nSlurmctldHost=other", *(["efs"] if kind != "text" else [])]
        wrong += [{"uint16": "65536", "uint32": "4294967296", "uint64": "18446744073709551616"}.get(kind, "a b"), "- 1"]
        wrong += ["-2", "1.5"] if kind != "text" else ["no such"]
        for value in wrong:
            assert refused(line, **{name: value}), (name, value)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_each_parameter_with_a_letter_less_is_refused_and_is_what_was_meant(line: Line) -> None:
    known = {name.lower() for name in line.parameters}
    for name in line.parameters:
        typo = name[:3] + name[4:]
        if name.lower() in line.reserved or typo.lower() in known or len(name) < 5:
            continue
        [violation] = refused(line, **{typo: "1"})
        assert violation.path == (typo,)
        if "is one of" not in violation.reason:  # such as an s less, of which there is a parameter elsewhere
            assert f"{name}" in violation.reason.partition("?")[0], violation


@pytest.mark.parametrize(
    ("line", "name", "value", "text"),
    [
        (
            CLUSTER,
            "NoSuchParameter",
            "1",
            "got 'NoSuchParameter'; allowed: a parameter of the cluster (unknown to Slurm",
        ),
        (CLUSTER, "MesageTimeout", "1", "(did you mean MessageTimeout? Slurm 25.11, slurm.conf(5))"),
        (CLUSTER, "TCPTimeout", "efs", "got 'efs'; allowed: 0 to 65535 or UNLIMITED (TCPTimeout: Slurm 25.11"),
        (CLUSTER, "SallocDefaultCommand", "x", "a parameter of the cluster"),
        (CLUSTER, "MaxNodes", "4", "MaxNodes is one of a partition: a queue's custom_slurm_settings"),
        (QUEUE, "MaxNoes", "4", "did you mean MaxNodes"),
        (QUEUE, "MaxTime", "7days", "got '7days'; allowed: minutes, minutes:seconds"),
        (QUEUE, "Hidden", "maybe", "allowed: YES or NO (Hidden"),
        (QUEUE, "MessageTimeout", "60", "MessageTimeout is one of the cluster: slurm.custom_settings"),
        (COMPUTE_RESOURCE, "RealMemry", "1", "did you mean RealMemory"),
        (COMPUTE_RESOURCE, "Weight", "1", "any parameter that ParallelCluster does not set itself"),
        (CLUSTER, "PartitionName", "all Nodes=ALL MaxNoes=4", "got 'MaxNoes'; allowed: a parameter of a partition"),
        (CLUSTER, "NodeName", "x CPUs=many", "got 'many'; allowed: 0 to 65535"),
        (CLUSTER, "NodeSet", "x nodes", "a name, then PARAMETER=VALUE"),
    ],
)
def test_what_is_refused_is_told_with_what_is_allowed(line: Line, name: str, value: str, text: str) -> None:
    [violation] = refused(line, **{name: value})
    assert text in str(violation)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SchedulerParameters", "defer, bf_interval=30,"),
        ("MailProg", '"/usr/bin/mail -s slurm"'),
        ("MaxJobCount", "0x1000"),
        ("PartitionName", 'all Nodes=ALL Default=NO MaxTime=1-0 AllowGroups="a b"'),
        ("DownNodes", "x[1-3] State=DOWN Reason=power"),
        ("MaxJobCount", "${Token[TOKEN.1]}"),
    ],
)
def test_what_slurm_accepts(name: str, value: str) -> None:
    assert refused(CLUSTER, **{name: value}) == []


def test_a_cluster_is_told_all_of_them_at_once() -> None:
    overrides = {
        "Scheduling": {
            "SlurmQueues": [
                {"Name": "trn1", "ComputeResources": [{"Name": "trn1-32xl", "CustomSlurmSettings": {"TmpDsk": 5}}]}
            ]
        }
    }
    spec = cluster(slurm=SlurmSpec(custom_settings={"Xyz": "1", "TCPTimeout": "efs"}), overrides=overrides)
    paths = [violation.path for violation in cluster_rules.violations(spec)]
    assert ("slurm", "custom_settings", "Xyz") in paths
    assert ("slurm", "custom_settings", "TCPTimeout") in paths
    place = ("overrides", "Scheduling", "SlurmQueues", 0, "ComputeResources", 0, "CustomSlurmSettings")
    assert (*place, "TmpDsk") in paths

    overrides["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["CustomSlurmSettings"] = ["TmpDisk"]  # type: ignore[index]
    assert place in [violation.path for violation in cluster_rules.violations(cluster(overrides=overrides))]


def test_the_table_is_of_the_slurm_of_the_pinned_parallelcluster() -> None:
    """What each version ships: https://github.com/aws/aws-parallelcluster/releases."""
    assert {"3.16.1": "25.11.8"}[PINNED] == slurm_parameters.VERSION
