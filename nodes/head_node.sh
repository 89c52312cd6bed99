#!/bin/bash
# Makes the head node ready: limits, health checks around jobs, a Slurm that comes back, and the unit that builds the
# software of training jobs (software.sh). Runs as root when the node is created and at each update of the cluster; a
# second run changes nothing. It asks no mirror of packages: CloudFormation waits for its end. Arguments are name=value:
#
# cluster, region: where the node stands; deployment: whose it is; user: who people log in as
# sdk: release of the Neuron SDK; python: minor version of Python
# pytorch, torch_xla, torch_neuronx, compiler, libneuronxla: versions of the Python packages torch, torch-xla,
# torch-neuronx, neuronx-cc and libneuronxla. Without sdk all of these are missing, and no software of jobs is built
# mount_dir: the file system that all nodes share
# metrics: on, if the node is to send metrics to CloudWatch
# budget: what nodes may cost in a month, what happens then, and what an hour of them costs: LIMIT,ACTION,TYPE=PRICE...
# jobs: s3:// address of the programs of the training jobs, a zip file
# team: s3:// address of the document about users, accounts and limits
set -euo pipefail
exec 2>&1

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# What may hang here is the file system. With the 10 s after which `limited` kills, it is below two minutes.
TIME_LIMIT=100
source "$here/lib/common.sh"
source "$here/install/system.sh"
source "$here/install/head_node.sh"
source "$here/install/metrics.sh"
source "$here/install/team.sh"

readonly ENVIRONMENT="sdk python pytorch torch_xla torch_neuronx compiler libneuronxla"
# shellcheck disable=SC2034 # jobs is for software.sh
sdk='' metrics='' budget='' jobs='' team=''
parse_arguments "cluster region deployment user mount_dir" "$ENVIRONMENT metrics budget jobs team" "$@"
[[ -z $sdk ]] || require_arguments "$ENVIRONMENT"
# Other users or another budget are no other software: a build of it continues.
software=()
for argument in "$@"; do
    [[ $argument == @(team|budget)=* ]] || software+=("$argument")
done
remember "$@"
use_system
check_mounted "$mount_dir"
set_limits
protect_files
write_profile
add_slurm_hooks
keep_slurm_running
set_team
if [[ -n $sdk ]]; then
    start_software_unit "${software[@]}"
else
    remove_software_unit
fi
set_metrics head_node
mark_root_volume
record "$@"
