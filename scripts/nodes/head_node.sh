#!/bin/bash
# Makes the head node ready: limits, the Python environment of the training jobs, health checks around jobs. Runs as
# root when the node is created and at each update of the cluster; a second run changes nothing. Arguments are
# name=value:
#
# cluster, region: where the node stands; deployment: whose it is; user: who people log in as
# sdk: release of the Neuron SDK; python: minor version of Python
# pytorch, torch_xla, torch_neuronx, compiler, libneuronxla: versions of the Python packages torch, torch-xla,
# torch-neuronx, neuronx-cc and libneuronxla
# mount_dir: the file system that all nodes share
# metrics: on, if the node is to send metrics to CloudWatch
# jobs: s3:// address of the programs of the training jobs, a zip file
set -euo pipefail
exec 2>&1

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib/common.sh"
source "$here/install/system.sh"
source "$here/install/slurm_hooks.sh"
source "$here/install/python_environment.sh"
source "$here/install/training_jobs.sh"
source "$here/install/metrics.sh"
source "$here/install/snapshots.sh"

metrics='' jobs=''
parse_arguments "cluster region deployment user sdk python pytorch torch_xla torch_neuronx compiler libneuronxla mount_dir" \
    "metrics jobs" "$@"
remember "$@"
use_system
check_mounted "$mount_dir"
mark_root_volume
set_limits
write_profile
add_slurm_hooks
make_python_environment
install_training_jobs
set_metrics head_node
record "$@"
