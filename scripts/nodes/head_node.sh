#!/bin/bash
# Runs on the head node, when it is created and at each update of the cluster. Installs nothing: checks what the node was given, and
# records it. Arguments are name=value.
set -euo pipefail
exec 2>&1
trap 'echo "head_node.sh: failed on line $LINENO"' ERR

state_dir=/var/lib/ultracluster
declare -- "$@"
: "${neuron_sdk:?}" "${pytorch:?}" "${mount_dir:?}"

mountpoint --quiet "$mount_dir" || { echo "head_node.sh: $mount_dir is not mounted"; exit 1; }
mkdir -p "$state_dir"
printf '%s\n' "$@" >"$state_dir/node.env"
echo "head_node.sh: done: $*"
