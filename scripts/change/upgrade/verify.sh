#!/bin/sh
# Fails with a reason, or prints what is mounted on this head node:
#
#   verify.sh MOUNT_DIR [homes]    Slurm answers, Lustre is mounted there, and with `homes` a file system at /home
export PATH="/opt/slurm/bin:$PATH"
sinfo --noheader >/dev/null || exit 1
findmnt --noheadings --types lustre --mountpoint "$1" --output SOURCE ||
    { echo "no Lustre file system is mounted at $1" >&2; exit 1; }
[ "${2-}" != homes ] || mountpoint --quiet /home || { echo "the homes are not mounted at /home" >&2; exit 1; }
