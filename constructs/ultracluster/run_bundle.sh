#!/bin/bash
# OnNodeConfigured of compute nodes, and what the launcher runs on head and login nodes: fetches a bundle, the zip file
# of scripts/nodes, and runs one of its scripts. Each bundle is unpacked once, under its own name; "current" leads to
# the last one that ran. Arguments: s3:// address of the bundle, AWS Region, the script in it, the script's arguments.
set -euo pipefail
exec 2>&1
umask 022 # users read what lies below /opt/ultracluster
trap 'echo "run_bundle.sh: failed on line $LINENO"' ERR

address=${1:?s3:// address of the bundle}
region=${2:?AWS Region}
script=${3:?script in the bundle}
home=${ULTRACLUSTER_HOME:-/opt/ultracluster}
bundle=$home/bundles/$(basename "$address" .zip)
new=$home/bundles/new

fail() {
    echo "run_bundle.sh: $1"
    exit 1
}

fetch() {
    local pause
    for pause in 5 10 15 20 0; do
        aws s3 cp --region "$region" --only-show-errors "$address" "$new/bundle.zip" && return
        sleep "$pause"
    done
    fail "$address could not be fetched in five attempts; may this node read it, and does it reach S3?"
}

if [[ ! -d $bundle ]]; then
    rm -rf "$new" # of a run that was interrupted
    mkdir -p "$new/files"
    fetch
    python3 -m zipfile -e "$new/bundle.zip" "$new/files" || fail "$address could not be unpacked"
    find "$new/files" -name '*.sh' -exec chmod a+x {} +
    mv -T "$new/files" "$bundle"
    rm -rf "$new"
fi
[[ -f $bundle/$script ]] || fail "there is no $script in $address"
ln -sfn "$bundle" "$home/current.new"
mv -T "$home/current.new" "$home/current"
exec bash "$home/current/$script" "${@:4}"
