#!/bin/bash
# Runs on each compute node, when it starts. Installs nothing: checks what the node was given, and
# records it. Arguments are name=value.
set -euo pipefail
exec 2>&1
trap 'echo "compute_node.sh: failed on line $LINENO"' ERR

state_dir=/var/lib/ultracluster
declare -- "$@"
: "${queue:?}" "${neuron_sdk:?}" "${pytorch:?}" "${mount_dir:?}" "${scratch_dir:?}"

mountpoint --quiet "$mount_dir" || { echo "compute_node.sh: $mount_dir is not mounted"; exit 1; }
[[ -d $scratch_dir ]] || echo "compute_node.sh: there is no $scratch_dir; this type has no local storage"
mkdir -p "$state_dir"
printf '%s\n' "$@" >"$state_dir/node.env"
echo "compute_node.sh: done: $*"
