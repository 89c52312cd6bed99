"""Arguments of the scripts of nodes of which the golden templates have no example."""

from __future__ import annotations

from stacks import node_arguments
from tests.constructs.domain.specs import NODES, changed, cluster, with_queue

OLDER = cluster(os="alinux2023", neuron_sdk="2.27.1", pytorch="2.8")


def test_versions_are_those_of_the_release_and_of_the_system() -> None:
    head_node = node_arguments.head_node(OLDER, "/fsx", deployment="trn1", metrics=False)
    compute_node = node_arguments.compute_node(OLDER, OLDER.queues[0], "/fsx", metrics=False)

    assert (head_node["torch_neuronx"], head_node["torch_xla"]) == ("2.8.0.2.11.19912", "2.8.1")
    assert (head_node["user"], head_node["python"]) == ("ec2-user", "3.12")
    assert (compute_node["driver"], compute_node["runtime"]) == ("2.25.4.0", "2.29.40.0")
    assert (compute_node["kernels"], compute_node["broken_kernel"]) == ("6.12", "6.18")


def test_a_queue_knows_where_efa_is_off_on_a_type_that_has_it() -> None:
    nodes = [
        changed(NODES, name="on", efa=True),
        changed(NODES, name="off", efa=False),
        changed(NODES, name="left-out", efa=None),
        changed(NODES, name="off-too", efa=False),
        changed(NODES, name="none", efa=False, instance_type="trn1.2xlarge"),
    ]
    spec = with_queue(*nodes)
    assert node_arguments.compute_node(spec, spec.queues[0], "/fsx", metrics=False)["without_efa"] == "off,off-too"
