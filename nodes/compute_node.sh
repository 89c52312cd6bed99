#!/bin/bash
# Makes a compute node ready to train: limits, names and storage, Neuron's driver and libraries, and a look at whether
# all devices are there. Runs as root when a node starts; a second run changes nothing. Arguments are name=value:
#
# queue, cluster, region: where the node stands
# sdk: release of the Neuron SDK; driver, runtime, collectives, tools: the versions of its packages; kernels: first two
# numbers of those that it was tested with, separated by commas; broken_kernel: those of the first one that it is known
# not to work with. Nodes with Neuron devices need all but the last; others get none of them
# python: minor version of Python, of the training environment; without it there is none
# mount_dir: the file system that all nodes share; scratch_dir: local disks
# without_efa: compute resources of the queue whose nodes have no EFA, separated by commas
# types: what instance types have that lib/instance_types.sh lacks, TYPE:DEVICES:CORES:EFA, separated by commas
# metrics: on, if the node is to send metrics to CloudWatch
set -euo pipefail
exec 2>&1

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib/common.sh"
source "$here/lib/instance_types.sh"
source "$here/install/system.sh"
source "$here/install/neuron.sh"
source "$here/install/verification.sh"
source "$here/install/metrics.sh"
source "$here/install/team.sh"

# Failures that a second try may end: a mirror that is being updated names, for some minutes, what it does not have.
readonly PASSING=" $BAD_KEY $NO_PACKAGE $NOT_INSTALLED $NO_HEADERS "

# ended CODE: how the script ended is told on the file system that all nodes share, for `./ultracluster status`: the
# instance ends with its bootstrap. What cannot be installed is tried twice before: ten bootstraps that fail, and a mirror
# fails those of many nodes at once, close the queue (PROTECTED; aws-parallelcluster-node 3.16.1, clustermgtd.py,
# protected_failure_count).
ended() {
    local code=$1 told=${mount_dir:-}/ultracluster/nodes/${cluster:-}/${HOSTNAME%%.*} pause=$((60 + RANDOM % 61))
    if [[ -z $failure ]]; then
        timeout 10 rm --force "$told" || true
    elif ((code != NOT_MOUNTED)) && [[ -n ${mount_dir:-} ]] && timeout 10 mountpoint --quiet "$mount_dir"; then
        timeout 10 install -D --mode=644 <(echo "$failure") "$told" || true
    fi
    if [[ $PASSING == *" $code "* && ! -v SECOND_TRY ]] && ((SECONDS + pause < TIME_LIMIT)); then
        log "the second and last try in $pause s"
        sleep "$pause"
        SECOND_TRY=1 exec env "SECONDS=$SECONDS" bash "$here/$PROGRAM" "${arguments[@]}"
    fi
}

readonly NEURON="sdk driver runtime collectives tools kernels"
python='' without_efa='' types='' metrics='' broken_kernel='' failure='interrupted.'
arguments=("$@") # in a trap, $@ may be that of a function
trap 'ended "$?"' EXIT
parse_arguments "queue cluster region mount_dir scratch_dir" "$NEURON broken_kernel python without_efa types metrics" "$@"
remember "$@"
use_system
get_metadata instance-type
instance_type=$metadata
look_up_instance_type "$instance_type" "$types"
((devices == 0)) || require_arguments "$NEURON python"

check_mounted "$mount_dir"
check_scratch
set_limits
protect_files
set_kernel_settings
set_host_name
write_profile
tune_lustre_client
allow_real_time
if ((devices)); then
    install_neuron
    load_driver
    verify_neuron
fi
verify_efa
[[ -z $python ]] || install_python
set_metrics compute_node
follow_team compute
record "$@" "instance_type=$instance_type"
failure=''
