"""The arguments of the scripts that nodes run (``nodes``). Versions are exact."""

from ultracluster.domain import neuron
from ultracluster.domain.budget import BudgetSpec
from ultracluster.domain.budget import argument as argument_of
from ultracluster.domain.cluster import ClusterSpec, QueueSpec


def compute_node(spec: ClusterSpec, queue: QueueSpec, mount_dir: str, *, metrics: bool) -> dict[str, str]:
    """Return the arguments for the compute nodes of a queue; those of Neuron are for nodes with its devices alone."""
    arguments = {"queue": queue.name, "cluster": spec.name, "region": spec.region}
    if queue.has_trainium and spec.neuron_sdk is not None:
        release = neuron.RELEASES[spec.neuron_sdk]
        arguments |= {"sdk": spec.neuron_sdk, **release.packages(spec.os, spec.neuron_driver)}
    arguments |= {
        **_python(spec),
        "mount_dir": mount_dir,
        "scratch_dir": queue.scratch_dir,
    }
    switched_off = [r.name for r in queue.compute_resources if r.cards[1] and not r.has_efa]
    if switched_off:
        arguments["without_efa"] = ",".join(switched_off)
    stated = {r.type_facts.for_nodes(r.instance_type): None for r in queue.compute_resources if r.type_facts}
    if stated:
        arguments["types"] = ",".join(stated)
    return arguments | _metrics(metrics)


def head_node(
    spec: ClusterSpec, mount_dir: str, *, deployment: str, metrics: bool, budget: BudgetSpec | None = None
) -> dict[str, str]:
    """Return the arguments for the head node, which makes the training environment if there is a Neuron SDK."""
    return {
        "cluster": spec.name,
        "region": spec.region,
        "deployment": deployment,
        **_environment(spec),
        "mount_dir": mount_dir,
        "user": neuron.SYSTEMS[spec.os].user,
        **_metrics(metrics),
        **(
            {"budget": argument_of(budget, spec.region, spec.instance_types, spec.stated_prices)}
            if metrics and budget
            else {}
        ),
    }


def login_node(spec: ClusterSpec, mount_dir: str) -> dict[str, str]:
    """Return the arguments for login nodes, which use the training environment that the head node makes.

    They name no release: a running login node gets no update.
    """
    return {
        "cluster": spec.name,
        **_python(spec),
        "mount_dir": mount_dir,
    }


def _environment(spec: ClusterSpec) -> dict[str, str]:
    """Return what the training environment consists of; without a Neuron SDK nothing."""
    if spec.neuron_sdk is None:
        return {}
    release = neuron.RELEASES[spec.neuron_sdk]
    pytorch = release.pytorch[spec.pytorch]
    return {
        "sdk": spec.neuron_sdk,
        **_python(spec),
        "pytorch": pytorch.torch,
        "torch_neuronx": pytorch.torch_neuronx,
        "compiler": release.compiler,
        "torch_xla": pytorch.torch_xla,
        "libneuronxla": release.libneuronxla,
    }


def _python(spec: ClusterSpec) -> dict[str, str]:
    """Return the Python of the training environment; without a Neuron SDK there is none."""
    return {} if spec.neuron_sdk is None else {"python": neuron.SYSTEMS[spec.os].python}


def _metrics(on: bool) -> dict[str, str]:
    return {"metrics": "on"} if on else {}
