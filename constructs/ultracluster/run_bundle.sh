#!/bin/bash
# OnNodeConfigured of compute nodes, and what the launcher runs on head and login nodes: fetches a bundle, the zip file
# of nodes, and runs one of its scripts. Each bundle is unpacked once, under its own name; "current" leads to
# the last one that ran. Arguments: s3:// address of the bundle, AWS Region, the script in it, the script's arguments.
#
# It fails as the scripts do, with their codes (nodes/lib/common.sh).
set -euo pipefail
exec 2>&1
umask 022 # users read what lies below /opt/ultracluster
trap 'fail 1 "line $LINENO: $BASH_COMMAND" "fix what the lines above say, then start the node again"' ERR

address=${1:?s3:// address of the bundle}
region=${2:?AWS Region}
script=${3:?script in the bundle}
home=${ULTRACLUSTER_HOME:-/opt/ultracluster}
bundle=$home/bundles/$(basename "$address" .zip)
new=$home/bundles/new

# fail CODE WHAT TO_DO: ends the script.
fail() {
    echo "run_bundle.sh: failed ($1): $2. To do: $3."
    exit "$1"
}

fetch() {
    local pause
    for pause in 5 10 15 20 0; do
        aws s3 cp --region "$region" --cli-connect-timeout 5 --cli-read-timeout 10 --only-show-errors \
            "$address" "$new/bundle.zip" && return
        sleep "$pause"
    done
    fail 10 "$address could not be fetched in five attempts" \
        "see above whether this node does not reach S3, or may not read it any more: docs/guides/neuron-release.md"
}

if [[ ! -d $bundle ]]; then
    rm -rf "$new" # of a run that was interrupted
    mkdir -p "$new/files"
    fetch
    python3 -m zipfile -e "$new/bundle.zip" "$new/files" ||
        fail 24 "$address could not be unpacked" "see above: unless a disk is full, delete it and deploy again"
    find "$new/files" -name '*.sh' -exec chmod a+x {} +
    mv -T "$new/files" "$bundle"
    rm -rf "$new"
fi
[[ -f $bundle/$script ]] ||
    fail 24 "there is no $script in $address" "put it into the directory that the bundle is made of, then deploy again"
ln -sfn "$bundle" "$home/current.new"
mv -T "$home/current.new" "$home/current"
exec bash "$home/current/$script" "${@:4}"
