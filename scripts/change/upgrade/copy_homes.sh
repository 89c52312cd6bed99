#!/bin/sh
# Copies /home of this head node to another file system, as root, and prints files and bytes of both:
#
#   copy_homes.sh TYPE OPTIONS SOURCE once    what is there is copied; people may go on working here
#   copy_homes.sh TYPE OPTIONS SOURCE all     every file must be there afterwards, or it fails
#
# The first three are what `mount` takes. A file that is newer there stays. Called again, it copies the rest; a copy that
# still runs on the node is awaited. NFS keeps no POSIX ACLs and extended attributes.
set -eu
type=$1 options=$2 source=$3 wanted=$4
exec 9>/run/ultracluster-homes.lock
flock 9
target=$(mktemp --directory)
trap 'umount "$target" 2>/dev/null || true; rmdir "$target"' EXIT
mount --types "$type" -o "$options" "$source" "$target"
count() {
    find "$1" -xdev -type f -printf '%s\n' |
        awk '{ files++; bytes += $1 } END { printf "%d files, %d bytes", files, bytes }'
}
# Each home, not /home itself: users.py sets its mode, and FSx for OpenZFS may refuse another one.
copy() {
    (cd /home && find . -mindepth 1 -maxdepth 1 -printf '%P\0') |
        rsync --recursive --from0 --files-from=- --archive --hard-links --numeric-ids --no-devices --no-specials \
            --one-file-system --update "$@" /home/ "$target/"
}
tries=0 left=''
while [ "$left" != 0 ]; do
    tries=$((tries + 1))
    [ "$tries" -le 3 ] || { echo "$left files change while they are copied" >&2; exit 1; }
    status=0
    copy || status=$?
    case $status in 0 | 24) ;; *) exit "$status" ;; esac # 24: a file was deleted meanwhile
    [ "$wanted" = all ] || break
    left=$(copy --dry-run --itemize-changes | grep --count '^>f' || true)
done
echo "/home of this head node: $(count /home); on the homes: $(count "$target")."
