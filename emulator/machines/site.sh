#!/bin/bash
# The place where machines run: namespaces of its own, with a network that joins them and a file system in memory. This
# is its process 1: whatever runs in it ends with it, and it ends with its standard input.
# Arguments: the image, and where to mount the file system. Prints a line when it is ready.
set -euo pipefail
image=$1 directory=$2

mount --make-rprivate /
mount -t proc proc "$image/proc"
mount -t tmpfs -o mode=755 tmpfs "$directory"
mkdir "$directory/machines" "$directory/exports" "$directory/storage"
# All file systems together are full when they have a quarter of this computer's memory; the rest has its half at most.
mount -t tmpfs -o mode=755,size=25% tmpfs "$directory/storage"
mkdir "$directory/storage/filesystems" "$directory/storage/snapshots"
chroot "$image" ip link set lo up
chroot "$image" ip link add switch type bridge
chroot "$image" ip link set switch up
echo ready
read -r || true
