#!/bin/bash
# Makes a compute node ready to train: limits, names and storage, Neuron's driver and libraries, and a look at whether
# all devices are there. Runs as root when a node starts; a second run changes nothing. Arguments are name=value:
#
# queue, cluster, region: where the node stands
# sdk: release of the Neuron SDK; driver, runtime, collectives, tools: the versions of its packages; kernels: first two
# numbers of those that it was tested with, separated by commas; python: minor version of Python
# mount_dir: the file system that all nodes share; scratch_dir: local disks
# without_efa: compute resources of the queue whose nodes have no EFA, separated by commas
# metrics: on, if the node is to send metrics to CloudWatch
set -euo pipefail
exec 2>&1

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib/common.sh"
source "$here/lib/instance_types.sh"
source "$here/install/system.sh"
source "$here/install/lustre_client.sh"
source "$here/install/neuron.sh"
source "$here/install/verification.sh"
source "$here/install/metrics.sh"

without_efa='' metrics=''
parse_arguments "queue cluster region sdk driver runtime collectives tools kernels python mount_dir scratch_dir" \
    "without_efa metrics" "$@"
remember "$@"
use_system
get_metadata instance-type
instance_type=$metadata
look_up_instance_type "$instance_type"

check_mounted "$mount_dir"
check_scratch
set_limits
set_kernel_settings
set_host_name
write_profile
tune_lustre_client
if ((devices)); then
    tell_untested_kernel
    install_neuron
    load_driver
    verify_neuron
fi
verify_efa
install_python
set_metrics compute_node
record "$@" "instance_type=$instance_type"
