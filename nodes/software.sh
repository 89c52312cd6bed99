#!/bin/bash
# Builds the software of training jobs on the file system that all nodes share: the Python environment, and the programs.
# The unit ultracluster-software of the head node runs it, outside of the cluster's creation and updates. A second run
# changes nothing; an interrupted one is repeated. Arguments: those of head_node.sh.
#
# Beside the link of the cluster to its environment, "current-CLUSTER", are ".log", which takes the output, and ".state",
# of which jobs and `./ultracluster status` read how it is: state= (building, ready or failed), environment=, reason=, since=.
set -euo pipefail
exec 2>&1

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Nobody waits for it, and a mirror that is slow or down may be back within the hour.
TIME_LIMIT=3600
source "$here/lib/common.sh"
source "$here/install/system.sh"
source "$here/install/python_environment.sh"
source "$here/install/training_jobs.sh"

# tell_state STATE [REASON]: writes the file, at once, unless it says so already.
tell_state() {
    local text
    text=$(printf '%s\n' "state=$1" "environment=$environment" "reason=${2:-}")
    [[ $(grep --invert-match '^since=' "$current.state" 2>/dev/null) == "$text" ]] ||
        write_file "$current.state" 644 <<<"$text"$'\n'"since=$(date --utc +%FT%TZ)"
}

# ended: says how the script ended, in the file and, beside the log, to who started it. Bash forgets the exit code when a
# signal ends it, so `failure` tells.
ended() {
    if [[ -n $failure ]]; then
        tell_state failed "$failure"
        echo "$PROGRAM: $failure Its log: $current.log" >&3
    else
        tell_state ready
        echo "$PROGRAM: the Python environment is $environment" >&3
    fi
}

# shellcheck disable=SC2034,SC2154 # arguments; those that are for head_node.sh are not looked at
metrics='' jobs=''
parse_arguments "cluster region deployment user sdk python pytorch torch_xla torch_neuronx compiler libneuronxla mount_dir" \
    "metrics jobs" "$@"
use_system
check_mounted "$mount_dir"
# shellcheck disable=SC2154 # arguments
environment=$sdk-pytorch$pytorch-$os
current=$mount_dir/ultracluster/python/current-$cluster
install --directory --mode=755 "${current%/*}"
exec 3>&1 >>"$current.log" 2>&1
failure='interrupted.'
trap ended EXIT
log "$(date --utc +%FT%TZ): Neuron SDK $sdk, PyTorch $pytorch"

# The first programs tell jobs to wait for the environment. Later ones come after the environment that they were written
# for: until then, jobs start from what was there before.
if [[ -n $jobs && ! -e $mount_dir/ultracluster/jobs/current ]]; then
    tell_state building
    install_training_jobs
fi
make_python_environment
install_training_jobs
failure=''
