#!/bin/bash
# Starts a machine in the site that runs this. Its root volume, a layer over the image, stays over a reboot.
# Arguments: the image, directory of the site, id of the instance, its cluster, options of unshare (one argument), and what
# machine.sh takes besides directories.
set -euo pipefail
image=$1 directory=$2 id=$3 cluster=$4 own_user=$5
machine=$directory/machines/$id
mkdir --parents "$machine/upper" "$machine/work" "$machine/root" "$directory/exports/$cluster"
mountpoint --quiet "$machine/root" ||
    mount -t overlay -o "lowerdir=$image,upperdir=$machine/upper,workdir=$machine/work${own_user:+,userxattr}" overlay "$machine/root"
# shellcheck disable=SC2086 # several options
exec unshare $own_user --mount --uts --ipc --net --pid --fork --kill-child \
    bash "${BASH_SOURCE[0]%/*}/machine.sh" "$image" "$machine/root" "$6" "$7" \
    "$directory/exports/$cluster" "$directory/filesystems" "${@:8}"
