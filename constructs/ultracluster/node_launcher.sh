#!/bin/bash
# OnNodeConfigured of head and login nodes: runs the script that an SSM parameter names.
#
# ParallelCluster refuses an update that changes their OnNodeConfigured, its arguments among them. So this file never
# changes; what it runs may. Arguments: name of the parameter, AWS Region.
set -euo pipefail
exec 2>&1
trap 'echo "node_launcher.sh: failed on line $LINENO"' ERR

parameter=${1:?name of the SSM parameter}
region=${2:?AWS Region}
to_lines='import json, sys; action = json.load(sys.stdin); print(action["script"], *action["arguments"], sep="\n")'

attempt() {
    local pause
    for pause in 5 10 15 20 0; do
        "$@" && return
        sleep "$pause"
    done
    echo "node_launcher.sh: failed five times: $*" >&2
    return 1
}

value=$(attempt aws ssm get-parameter --region "$region" --name "$parameter" --query Parameter.Value --output text)
lines=$(python3 -c "$to_lines" <<<"$value")
mapfile -t command <<<"$lines"
script=$(mktemp)
attempt aws s3 cp --region "$region" --only-show-errors "${command[0]}" "$script"
bash "$script" "${command[@]:1}"
