#!/bin/bash
# Runs a Slurm cluster in namespaces of its own: this process is the first of them, and whatever runs in them ends with
# it. Arguments: directory of the cluster, names of the nodes. The directory has a root directory "base", "shared" with
# what is mounted on all machines, their "hosts", "borrowed" with what else to mount (path there, path here), and gets
# "machines" and a file "ready".
set -euo pipefail
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
directory=$1
shift

# make_root NAME: makes the root directory of a machine.
make_root() {
    local machine=$directory/machines/$1 mount source
    mkdir -p "$machine/upper" "$machine/work" "$machine/root"
    mount -t overlay -o "lowerdir=$directory/base,upperdir=$machine/upper,workdir=$machine/work" overlay "$machine/root"
    for mount in fsx home opt/slurm opt/ultracluster/current; do
        mkdir -p "$machine/root/$mount"
        mount --bind "$directory/shared/$mount" "$machine/root/$mount"
    done
    while read -r mount source; do
        mkdir -p "$machine/root$mount"
        mount --bind -o ro "$source" "$machine/root$mount"
    done <"$directory/borrowed"
    mkdir -p "$machine/root/run/munge"
    cp "$directory/hosts" "$machine/root/etc/hosts"
    # Debian has this computer's name server, for whose answer slurmd would wait 10 s: without any it is refused at once.
    rm --force "$machine/root/etc/resolv.conf" && : >"$machine/root/etc/resolv.conf"
    mount -t tmpfs -o mode=1777 tmpfs "$machine/root/scratch"
}

# start_node NAME INDEX: starts a machine with namespaces and an interface of its own.
start_node() {
    local unshare init=''
    make_root "$1"
    unshare --mount --uts --ipc --net --pid --fork --kill-child \
        bash "$here/node.sh" "$directory/machines/$1/root" "$1" "$2" </dev/null &>"$directory/machines/$1/log" &
    unshare=$!
    until [[ -n $init && -f /proc/$init/cmdline && $(tr '\0' ' ' <"/proc/$init/cmdline") == bash* ]]; do
        read -r init <"/proc/$unshare/task/$unshare/children" || true
    done
    ip link add "node$2" type veth peer name eth0 netns "$init"
    ip link set "node$2" master switch up
    echo "$unshare $init" >"$directory/machines/$1/processes"
}

mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs "$directory/machines"
hostname head
ip link set lo up
ip link add switch type bridge
ip address add 10.99.1.254/24 dev switch
ip link set switch up

make_root head
mount --rbind /proc "$directory/machines/head/root/proc"
chroot "$directory/machines/head/root" munged --force 2>/dev/null
if [[ -e $directory/shared/opt/slurm/etc/slurmdbd.conf ]]; then
    chroot "$directory/machines/head/root" bash <"$here/accounting.sh"
fi
chroot "$directory/machines/head/root" slurmctld
index=0
for name in "$@"; do
    index=$((index + 1))
    start_node "$name" "$index"
done
touch "$directory/ready"
sleep infinity &
wait # and reap what is left to this process
