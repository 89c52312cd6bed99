"""Which log streams of a cluster are meant by a name."""

from __future__ import annotations

import pytest

from scripts.logs import choice as log_choice
from scripts.logs import streams
from scripts.remote import nodes, output_stream
from tests.scripts.account import Operated
from tests.scripts.logs.log_lines import ASSIGNED, GONE, GONE_HOST, head_prefix


def test_a_name_in_slurm_leads_to_the_instances_that_had_it(
    operated: Operated,
) -> None:
    operated.log(f"{head_prefix(operated)}slurm_resume", ASSIGNED, ASSIGNED.replace(GONE, "i-0000000000000000a"))
    deployment = operated.deployment()
    found = nodes.over_time(deployment, streams.group(deployment), "trn1-dy-trn1-32xl-1", print)
    assert [each.instance_id for each in found] == ["i-0000000000000000a", GONE]


def test_the_newest_group_of_this_cluster_is_taken(operated: Operated) -> None:
    kept = operated.log_group
    for name in ("/aws/parallelcluster/trn1-16-2-209901010000", "/aws/parallelcluster/trn1-16-200001010000"):
        output_stream.prepare(operated.client("logs"), name)
    try:
        assert streams.group(operated.deployment()) == kept
    finally:
        for name in ("/aws/parallelcluster/trn1-16-2-209901010000", "/aws/parallelcluster/trn1-16-200001010000"):
            operated.client("logs").delete_log_group(logGroupName=name)


def test_the_logs_of_a_head_node_that_is_gone(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    operated.log(f"{GONE_HOST}.{GONE}.clustermgtd", "x")
    monkeypatch.setattr(nodes, "present", lambda _: [])
    choice = log_choice.choose(operated.deployment(), "head-node", "", print)
    assert [each.instance_id for each in choice.streams] == [GONE]
