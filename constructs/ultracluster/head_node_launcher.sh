#!/bin/bash
# OnNodeConfigured of every head node: runs the script that an SSM parameter names.
#
# ParallelCluster refuses an update that changes a head node's OnNodeConfigured, its arguments among them. So this file
# never changes; what it runs may. Arguments: name of the parameter, AWS Region.
set -euo pipefail
exec 2>&1

parameter=$1
region=$2
script=$(mktemp)

attempt() {
    local try
    for try in 1 2 3 4 5; do
        "$@" && return
        sleep $((try * 5))
    done
    echo "head_node_launcher.sh: failed five times: $*" >&2
    return 1
}

action=$(attempt aws ssm get-parameter --region "$region" --name "$parameter" --query Parameter.Value --output text)
attempt aws s3 cp --region "$region" --only-show-errors "$(jq --raw-output .script <<<"$action")" "$script"
mapfile -t arguments < <(jq --raw-output '.arguments[]' <<<"$action")
bash "$script" "${arguments[@]}"
