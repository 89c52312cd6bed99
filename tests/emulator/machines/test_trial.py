"""Slurm's real controller judges the custom settings of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.machines import image
from emulator.machines.guest import slurm_configuration
from emulator.machines.trial import Trial, try_controller
from tests.constructs.domain.test_slurm_rules import VALUES, WORDS
from tests.emulator.machines.test_slurm_configuration import TYPES, configuration, queue, resource
from ultracluster.domain import slurm_parameters as parameters
from ultracluster.domain.slurm_rules import CLUSTER, COMPUTE_RESOURCE, QUEUE, Line


def tried(
    of_cluster: dict[str, str] | None = None,
    of_queue: dict[str, str] | None = None,
    of_nodes: dict[str, str] | None = None,
    **settings: Any,
) -> Trial:
    nodes = queue(resource(CustomSlurmSettings=of_nodes), CustomSlurmSettings=of_queue)
    custom = [{name: value} for name, value in (of_cluster or {}).items()]
    return try_controller(image.prepare(), configuration(nodes, CustomSlurmSettings=custom, **settings), TYPES)


def valid(line: Line) -> dict[str, str]:
    """Return a value for each parameter that is not a line of its own, nor ParallelCluster's."""
    others = {*line.reserved, "nodename", "partitionname", "nodeset", "downnodes"}
    return {
        name: WORDS.get(name, "1" if kind.startswith("uint") else VALUES[kind])
        for name, kind in line.parameters.items()
        if name.lower() not in others
    }


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize(
    ("of_cluster", "of_queue", "of_nodes", "said"),
    [
        ({"NoSuchParameter": "1"}, {}, {}, "unrecognized key: NoSuchParameter"),
        ({"TCPTimeout": "efs"}, {}, {}, 'TCPTimeout value "efs" is not a valid number'),
        ({"SchedulerType": "sched/none"}, {}, {}, "cannot find sched plugin for sched/none"),
        ({"DebugFlags": "everything"}, {}, {}, "Invalid DebugFlag: everything"),
        ({}, {"MaxNoes": "4"}, {}, "unrecognized key: MaxNoes"),
        ({}, {}, {"TmpDsk": "5"}, "unrecognized key: TmpDsk"),
    ],
)
def test_what_the_controller_refuses(
    of_cluster: dict[str, str], of_queue: dict[str, str], of_nodes: dict[str, str], said: str
) -> None:
    refused = tried(of_cluster, of_queue, of_nodes)
    assert said in refused.refusal
    assert "latest value used" not in refused.refusal


@pytest.mark.slow
@pytest.mark.system
def test_it_starts_without_what_it_cannot_judge() -> None:
    of_database = {"AccountingStorageEnforce": "limits", "HttpParserType": "http_parser/libhttp_parser"}
    started = tried(
        {"MessageTimeout": "60", "SlurmctldDebug": "quiet", "TopologyPlugin": "topology/flat", **of_database},
        {"MaxNodes": "4", "Topology": "x"},
        {"TmpDisk": "5", "GresConf": "x"},
        Database={"Uri": "db", "UserName": "slurm"},
        CustomSlurmSettingsIncludeFile="s3://bucket/slurm.conf",
    )
    assert started == Trial(
        started.version,
        "",
        (
            "TopologyPlugin=topology/flat",
            "HttpParserType=http_parser/libhttp_parser",
            "Topology=x",
            "GresConf=x",
            "AccountingStorageEnforce=limits",
            "s3://bucket/slurm.conf",
        ),
    )
    assert started.version.startswith("24.11.")


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("line", ["cluster", "queue", "nodes"])
def test_its_parser_knows_each_parameter_of_the_tables(line: str) -> None:
    """Whatever of it plugins refuse: all names at once, but for those that only 25.11 has."""
    given: dict[str, Any] = {
        "cluster": {"of_cluster": valid(CLUSTER)},
        "queue": {"of_queue": valid(QUEUE)},
        "nodes": {"of_nodes": valid(COMPUTE_RESOURCE)},
    }[line]
    refusal = tried(**given).refusal
    assert "unrecognized key" not in refusal
    assert "is not a valid" not in refusal


@pytest.mark.parametrize(
    ("new", "table"),
    [
        (slurm_configuration._NEW_OF_CLUSTERS, parameters.CLUSTER),
        (slurm_configuration._NEW_OF_QUEUES, parameters.PARTITION),
        (slurm_configuration._NEW_OF_NODES, parameters.NODE),
    ],
)
def test_what_is_left_out_is_known_to_the_clusters_slurm(new: frozenset[str], table: dict[str, str]) -> None:
    assert new <= {name.lower() for name in table}
