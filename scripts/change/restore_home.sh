#!/bin/sh
# Copies /home of an attached volume to this head node, as root, or fails with a reason:
#
#   restore_home.sh VOLUME
#
# A file that is there already stays, unless it is that of /etc/skel. Prints how many files were copied, and their size.
#
# The root file system is the largest that has one of AWS's images' types. It is mounted read-only, after its journal,
# which a snapshot of a running node needs; XFS would refuse the UUID that the node's own root has if both are of one
# image. EC2's Nitro instances give the volume's id as serial number
# (https://docs.aws.amazon.com/ebs/latest/userguide/identify-nvme-ebs-device.html).
set -eu
volume=$1
serial=$(printf '%s' "$volume" | tr --delete -)
exec 9>/run/lock/ultracluster-restore
flock --nonblock 9 || { echo "another copy is running on this node" >&2; exit 1; }
device='' looks=0
while [ -z "$device" ]; do
    looks=$((looks + 1))
    [ "$looks" -le 60 ] || { echo "$volume is no device of this node" >&2; exit 1; }
    [ "$looks" = 1 ] || sleep 1
    device=$(lsblk --noheadings --nodeps --paths --output NAME,SERIAL |
        awk -v serial="$serial" '$2 == serial { print $1 }')
done
system=$(lsblk --noheadings --paths --raw --bytes --output NAME,FSTYPE,SIZE "$device" |
    awk '$2 ~ /^(ext4|xfs)$/ && $3 > size { size = $3; line = $1 " " $2 } END { print line }')
[ -n "$system" ] || { echo "$volume has no root file system" >&2; exit 1; }
options=ro
[ "${system#* }" != xfs ] || options=ro,nouuid
umount --all-targets "${system% *}" 2>/dev/null || true
directory=$(mktemp --directory)
trap 'umount "$directory" 2>/dev/null || true; rmdir "$directory"' EXIT
mount --types "${system#* }" --options "$options" "${system% *}" "$directory"
[ -d "$directory/home" ] || { echo "$volume has no /home" >&2; exit 1; }
# What a new home has of /etc/skel, and nobody has changed, gives way to what the person had.
cd /home
for file in */.[!.]*; do
    [ -f "$file" ] && [ ! -L "$file" ] && [ -f "$directory/home/$file" ] || continue
    ! cmp --quiet "$file" "/etc/skel/${file#*/}" || rm "$file"
done
copied=$(rsync --archive --hard-links --acls --xattrs --numeric-ids --ignore-existing --stats "$directory/home/" /home/)
printf '%s\n' "$copied" | grep --extended-regexp '^(Number of regular files transferred|Total transferred file size)'
