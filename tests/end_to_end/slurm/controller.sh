#!/bin/bash
# Runs a Slurm controller in namespaces of its own, for nodes that never start: this process is the first of them, and
# whatever runs in them ends with it. Argument: a directory that has a root directory "base" and the configuration
# "slurm", and gets "machine" and a file "ready".
set -euo pipefail
directory=$1
machine=$directory/machine

mount --make-rprivate /
mount -t proc proc /proc
hostname head
ip link set lo up
ip link add eth0 type bridge # Slurm asks for an address other than the loopback's
ip address add 10.99.1.254/24 dev eth0
ip link set eth0 up

mkdir "$machine"
mount -t tmpfs tmpfs "$machine"
mkdir "$machine/upper" "$machine/work" "$machine/root"
mount -t overlay -o "lowerdir=$directory/base,upperdir=$machine/upper,workdir=$machine/work" overlay "$machine/root"
mount --bind "$directory/slurm" "$machine/root/etc/slurm"
mount --rbind /proc "$machine/root/proc"
echo 10.99.1.254 head >>"$machine/root/etc/hosts"
chroot "$machine/root" bash -c 'munged --force 2>/dev/null && slurmctld'
touch "$directory/ready"
sleep infinity &
wait # and reap what is left to this process
