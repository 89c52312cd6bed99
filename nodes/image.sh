#!/bin/bash
# Puts Neuron's driver, runtime, collectives and tools into an image, for the kernel that runs, which is the image's.
# Nothing is loaded: the instance needs no Neuron devices. compute_node.sh then finds on a node what it would download.
# ParallelCluster's component has run, let go of the kernel and cleaned up: what comes now has to see to both itself.
# Runs as root while EC2 Image Builder makes the image. Arguments are name=value:
#
# sdk: release of the Neuron SDK; driver, runtime, collectives, tools: the versions of its packages; kernels,
# broken_kernel: as of compute_node.sh; python: minor version of Python
set -euo pipefail
exec 2>&1

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib/common.sh"
source "$here/install/system.sh"
source "$here/install/neuron.sh"

# kernels: prints the kernels that the image can start, by their files.
kernels() {
    find /boot -maxdepth 1 -name 'vmlinuz-*' -printf '%f\n' | sort
}

broken_kernel=''
parse_arguments "sdk driver runtime collectives tools kernels python" "broken_kernel" "$@"
use_system
kernels_before=$(kernels)
install_neuron
build_driver
install_python
new_kernels=$(comm -13 <(echo "$kernels_before") <(kernels))
[[ -z $new_kernels ]] ||
    fail "$BAD_DRIVER" "${new_kernels//$'\n'/ } came with the packages, and the driver is built for $(uname -r)" \
        "see above which package brings it; build on an image that has the newer kernel already"
case $os in
    amzn*) dnf_ clean all ;;
    *) apt_get clean ;;
esac
# shellcheck disable=SC2154 # an argument
log "Neuron SDK $sdk for the kernel $(uname -r)"
