"""What the scripts of nodes are told by the CDK, and image.sh by `image render`, for config/trn1-16.yaml."""

from __future__ import annotations

from pathlib import Path

from config.settings import load
from scripts.change.image import configuration
from ultracluster.domain import node_arguments

PROJECT = Path(__file__).parents[2]
_SETTINGS = load(PROJECT / "config" / "trn1-16.yaml")
_SPEC = _SETTINGS.cluster_spec
_MOUNT_DIR = _SETTINGS.storage.file_system.mount_dir

COMPUTE_NODE = node_arguments.compute_node(_SPEC, _SPEC.queues[0], _MOUNT_DIR, metrics=False)
_PLAIN = _SPEC.queues[0].model_copy(
    update={
        "compute_resources": [_SPEC.queues[0].compute_resources[0].model_copy(update={"instance_type": "c6i.4xlarge"})]
    }
)
PLAIN_NODE = node_arguments.compute_node(_SPEC, _PLAIN, _MOUNT_DIR, metrics=False)
"""Of a queue without Neuron devices."""
_ARM = _SPEC.model_copy(update={"neuron_sdk": None, "queues": [_PLAIN]})
WITHOUT_SDK = {
    "head_node.sh": node_arguments.head_node(_ARM, _MOUNT_DIR, deployment=_SETTINGS.name, metrics=False),
    "compute_node.sh": node_arguments.compute_node(_ARM, _PLAIN, _MOUNT_DIR, metrics=False),
    "login_node.sh": node_arguments.login_node(_ARM, _MOUNT_DIR),
}
"""Of a cluster without a Neuron SDK, by the script."""
HEAD_NODE = node_arguments.head_node(_SPEC, _MOUNT_DIR, deployment=_SETTINGS.name, metrics=False)
LOGIN_NODE = node_arguments.login_node(_SPEC, _MOUNT_DIR)
IMAGE = configuration.facts(_SETTINGS)
