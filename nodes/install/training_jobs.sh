#!/bin/bash
# The programs of the training jobs, on the file system that all nodes share. Sourced by the head node.
#
# Each version has a directory of its own, which is never changed: jobs run from it. New jobs start from "current".
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

# install_training_jobs: unpacks the zip file that $jobs names, an s3:// address, unless it is there, and lets "current"
# lead to it. All users' jobs keep what they compile next to it, and users their environments. Without $jobs, everything stays as it is.
install_training_jobs() {
    local parent=$mount_dir/ultracluster/jobs name
    [[ -n $jobs ]] || return 0
    name=$(basename "$jobs" .zip)
    install --directory --mode=755 "$parent"
    install --directory --mode=1777 "$mount_dir/ultracluster/compile-cache" "$mount_dir/ultracluster/envs"
    [[ -d $parent/$name ]] || unpack_training_jobs "$parent" "$parent/$name"
    set_link "$name" "$parent/current"
    log "new jobs start from $parent/$name"
}

# unpack_training_jobs PARENT DIRECTORY: fetches and unpacks. Another cluster on the file system may do so just now:
# who is first wins, and only what a run of an hour ago left is removed.
unpack_training_jobs() {
    local new
    find "$1" -maxdepth 1 -name '.new-*' -mmin +60 -exec rm --recursive {} +
    new=$(mktemp --directory "$1/.new-XXXXXX")
    retry "$NO_NETWORK" "$jobs cannot be fetched" \
        "see whether this node reaches S3 and its role may read that object" fetch_object "$jobs" "$new/jobs.zip"
    python3 -m zipfile --extract "$new/jobs.zip" "$new/files" ||
        fail "$BAD_ARCHIVE" "$jobs is no complete zip file" "delete it, then deploy again, which uploads it"
    chmod --recursive u=rwX,go=rX "$new/files"
    mv --no-target-directory "$new/files" "$2" || [[ -d $2 ]]
    rm --recursive "$new"
}
