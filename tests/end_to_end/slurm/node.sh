#!/bin/bash
# The first process of a node. Arguments: its root directory, its name, the last part of its address.
set -euo pipefail
root=$1
hostname "$2"
until ip link set eth0 up 2>/dev/null; do
    sleep 0.02
done
ip link set lo up
ip address add "10.99.1.$3/24" dev eth0
ip route add default via 10.99.1.254
mount -t proc proc "$root/proc"
chroot "$root" bash -c 'munged --force 2>/dev/null && slurmd'
sleep infinity &
wait
