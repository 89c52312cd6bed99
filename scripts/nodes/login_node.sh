#!/bin/bash
# Runs on each login node, when it starts. Installs nothing: checks what the node was given, and
# records it. Arguments are name=value.
set -euo pipefail
exec 2>&1
trap 'echo "login_node.sh: failed on line $LINENO"' ERR

state_dir=/var/lib/ultracluster
declare -- "$@"
: "${mount_dir:?}"

mountpoint --quiet "$mount_dir" || { echo "login_node.sh: $mount_dir is not mounted"; exit 1; }
mkdir -p "$state_dir"
printf '%s\n' "$@" >"$state_dir/node.env"
echo "login_node.sh: done: $*"
