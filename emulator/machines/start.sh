#!/bin/bash
# Starts a machine in the site that runs this. Its root volume, a layer over the image, stays over a reboot.
# Arguments: the image, directory of the site, id of the instance, its cluster, more options of the overlay,
# options of unshare (one argument), and what machine.sh takes besides directories.
set -euo pipefail
image=$1 directory=$2 id=$3 cluster=$4 options=$5 own_user=$6
machine=$directory/machines/$id
mkdir --parents "$machine/upper" "$machine/work" "$machine/root" "$directory/exports/$cluster"
mountpoint --quiet "$machine/root" ||
    mount -t overlay -o "lowerdir=$image,upperdir=$machine/upper,workdir=$machine/work$options" overlay "$machine/root"
# shellcheck disable=SC2086 # several options
exec unshare $own_user --mount --uts --ipc --net --pid --fork --kill-child \
    bash "${BASH_SOURCE[0]%/*}/machine.sh" "$image" "$machine/root" "$7" "$8" \
    "$directory/exports/$cluster" "$directory/storage/filesystems" "${@:9}"
