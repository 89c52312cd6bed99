#!/bin/bash
# What a virtual machine has before its operating system starts: disks, devices, network. Then that system: its process 1.
# The environment is the machine's. Arguments:
image=$1 root=$2          # directories of the site's image and of the machine
address=$3 network=$4     # its own, and what it reaches without a router
exports=$5 filesystems=$6 # directories that it can mount
guest=$7 port=$8
pace=$9          # JSON, how long things take in it
before=${10}     # shell commands that it runs before its system
program=${11}    # its process 1, a file of the guest
# and directories of this computer that it can read: each as it is seen here, and its path in the machine
set -euo pipefail

# lend DIRECTORY PATH: show a directory of this computer at a path of the machine, which cannot write to it.
lend() {
    mkdir --parents "$root$2"
    mount --bind "$1" "$root$2"
    # One that is read-only already may not be mounted otherwise by root of a user namespace.
    [[ ! -w $root$2 ]] || mount -o remount,bind,ro "$root$2"
}

# Network. When the server has the sockets, it adds eth0.
chroot "$image" ip link set lo up
chroot "$image" ip address add 169.254.169.254/32 dev lo
chroot "$image" ip address add 169.254.169.253/32 dev lo
chroot "$image" /usr/bin/python3 - 3 "$port" <"$(dirname "${BASH_SOURCE[0]}")/listen.py"
until chroot "$image" ip link set eth0 up 2>/dev/null; do
    sleep 0.02
done
chroot "$image" ip address add "$address/32" dev eth0
chroot "$image" ip route add "$network" dev eth0 src "$address"
# Who asks for metadata does so from this address, as on EC2: answers are no packets to the service, which a firewall may
# close to all but root, and the server that sends them is no user here.
chroot "$image" ip route replace local 169.254.169.254/32 dev lo table local proto kernel scope host src "$address"

# Disks and devices. The root directory is mounted once more: what another user namespace has mounted cannot be a root.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
for path in sys/vm sys/kernel sys/fs sysrq-trigger; do # those of this computer, as far as its kernel has them
    [[ -e $root/proc/$path ]] || continue
    mount --bind "$root/proc/$path" "$root/proc/$path"
    mount -o remount,bind,ro "$root/proc/$path"
done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln --symbolic /proc/self/fd "$root/dev/fd"
mkdir --mode=1777 "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir --mode=1777 "$root/run/lock"
mkdir --parents "$root/run/emulator/exports" "$root/run/emulator/filesystems" "$root/opt/emulator"
mount --bind "$exports" "$root/run/emulator/exports"
mount --bind "$filesystems" "$root/run/emulator/filesystems"
lend "$guest" /opt/emulator
shift 11
while (($#)); do
    lend "$1" "$2"
    shift 2
done
# All of it is for root. What every program needs to find AWS is no secret; no user gets more.
(umask 077 && env >"$root/run/emulator/environment")
grep --extended-regexp '^(PATH|LANG|AWS_REGION|AWS_DEFAULT_REGION|AWS_(ENDPOINT_URL|METADATA_SERVICE)\w*|EMULATOR_TRAINING)=' \
    "$root/run/emulator/environment" >"$root/run/emulator/public" || true
echo "$pace" >"$root/run/emulator/pace.json"
name=ip-${address//./-}
hostname "$name"
# In its own root directory: a link that it left in /etc would lead elsewhere from here.
# shellcheck disable=SC2016 # for the shell in there
chroot "$root" /bin/sh -c 'rm --force /etc/hostname /etc/resolv.conf && echo "$1" >/etc/hostname &&
    echo "nameserver 169.254.169.253" >/etc/resolv.conf' sh "$name"
# shellcheck disable=SC2016 # for the shell in there
# The file system of this computer is left behind: one who is only moved to another root directory can go back.
mkdir "$root/run/emulator/computer"
pivot_root "$root" "$root/run/emulator/computer"
cd /
umount --lazy /run/emulator/computer
rmdir /run/emulator/computer
exec /bin/sh -c "$before"'
cd /; echo up >&3; exec 3>&-; exec setpriv --bounding-set=-sys_time,-sys_module,-sys_boot,-sys_rawio \
    /usr/bin/python3 "/opt/emulator/$0"' "$program"
