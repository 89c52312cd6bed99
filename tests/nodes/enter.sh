#!/bin/bash
# Runs a command on a machine under test, as process 1 of namespaces of its own: file systems, network, host name.
# Arguments: what machines share, directory of this one, host name, command that serves its internet, and the command. What the machine's directory "mounts" has is mounted into its root. Files root.size and fsx.size give
# these file systems a size.
set -euo pipefail
shared=$1 machine=$2 name=$3 internet=$4
shift 4

mount --make-rprivate /
ip link set lo up
ip address add 169.254.169.254/32 dev lo
hostname "$name"

layers=$shared/base root=$machine/root upper=$machine/upper work=$machine/work
if [[ -f $machine/root.size ]]; then
    mount -t tmpfs -o "size=$(<"$machine/root.size")" tmpfs "$work"
    mkdir "$work/upper" "$work/work"
    layers=$upper:$layers upper=$work/upper work=$work/work
fi
mount -t overlay overlay -o "lowerdir=$layers,upperdir=$upper,workdir=$work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$machine/meminfo" "$root/proc/meminfo"
mount --bind "$machine/protected_regular" "$root/proc/sys/fs/protected_regular"
for directory in "$machine"/mounts/*; do
    mount --bind "$directory" "$root/${directory##*/}"
done
[[ ! -f $machine/fsx.size ]] || mount -t tmpfs -o "size=$(<"$machine/fsx.size")" tmpfs "$root/fsx"
mkdir -p "$root/opt/ultracluster/current"
mount --bind "$shared/bundle" "$root/opt/ultracluster/current"

coproc INTERNET { exec bash -c "$internet"; }
read -r <&"${INTERNET[0]}"
exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
