#!/bin/bash
# Makes a login node ready to submit jobs: limits and paths. Runs as root when a node starts; a second run changes
# nothing. Arguments are name=value:
#
# cluster: where the node stands; python: minor version of Python, of the training environment; without it there is none
# mount_dir: the file system that all nodes share
set -euo pipefail
exec 2>&1

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib/common.sh"
source "$here/install/system.sh"
source "$here/install/team.sh"

python=''
parse_arguments "cluster mount_dir" "python" "$@"
remember "$@"
use_system
check_mounted "$mount_dir"
set_limits
protect_files
write_profile
[[ -z $python ]] || install_python
follow_team login
record "$@"
