#!/bin/bash
# Starts Slurm's controller in the site that runs this, as a head node does, and ends it. Arguments: the image, directory
# of the site, more options of the overlay, options of unshare (one argument), Slurm's user. Standard input: a tar archive
# of /opt/slurm/etc. Prints the controller's version, then `started`, or `ended` and what it said before; exit code 0 in
# both cases.
set -euo pipefail

# isolated ROOT USER: what runs in namespaces of its own.
isolated() {
    local root=$1
    # Once more: what another user namespace has mounted cannot be a root.
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for device in null zero urandom random; do
        touch "$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    hostname ip-10-0-0-5
    # shellcheck disable=SC2016 # for the shell in there
    exec chroot "$root" /bin/sh -ec '
    slurmctld -V
    mkdir --parents /run/munge /etc/munge /var/spool/slurm.state
    chown "$1" /run /var/spool/slurm.state 2>/dev/null || true # the only user there is
    tar --extract --no-same-owner --directory /opt/slurm/etc
    (umask 077 && head --bytes=64 /dev/urandom >/etc/munge/munge.key)
    munged --force 2>/dev/null
    slurmctld -D -v </dev/null >/run/said 2>&1 &
    for _ in $(seq 300); do
        ! scontrol ping >/dev/null 2>&1 || exec echo started
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    echo ended
    grep -E "fatal|error" /run/said || tail /run/said
    ' sh "$2"
}

if (($# == 2)); then
    isolated "$@"
fi
image=$1 directory=$2/trial options=$3 own_user=$4 user=$5
mkdir --parents "$directory/upper" "$directory/work" "$directory/root"
mount -t overlay -o "lowerdir=$image,upperdir=$directory/upper,workdir=$directory/work$options" overlay "$directory/root"
chroot "$image" ip address add 10.0.0.5/32 dev switch
# shellcheck disable=SC2086 # several options
exec unshare $own_user --mount --uts --ipc --pid --fork --kill-child bash "${BASH_SOURCE[0]}" "$directory/root" "$user"
