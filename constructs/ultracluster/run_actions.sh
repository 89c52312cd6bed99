#!/bin/bash
# Runs scripts one after the other, those of nodes and those of whoever deploys the cluster. Arguments: AWS Region; the
# event, start, created or updated; then each script as a JSON object:
#
# name: what messages call it
# on: events that it is for, with spaces between. One for `created` also runs when the cluster is updated, once, if it
#     has not run on this node as it is
# script: its s3:// or https:// address
# args: its arguments
#
# A script that fails ends this one with its code, after its last lines once more.
set -euo pipefail
exec 2>&1
umask 022
trap 'fail 1 "line $LINENO: $BASH_COMMAND" "fix what the lines above say, then start the node again"' ERR

region=${1:?AWS Region}
event=${2:?start, created or updated}
home=${ULTRACLUSTER_HOME:-/opt/ultracluster}
# shellcheck disable=SC2016 # Python
to_words='import json, shlex, sys
each = json.loads(sys.argv[1])
print(shlex.join([each["name"], each["on"], each["script"], *each["args"]]))'

# fail CODE WHAT TO_DO: ends the script.
fail() {
    echo "run_actions.sh: failed ($1): $2. To do: $3."
    exit "$1"
}

# fetch ADDRESS FILE
fetch() {
    local pause
    for pause in 5 10 15 20 0; do
        if [[ $1 == s3://* ]]; then
            aws s3 cp --region "$region" --cli-connect-timeout 5 --cli-read-timeout 10 --only-show-errors "$1" "$2" &&
                return
        else
            curl --fail --silent --show-error --location --proto '=https' --connect-timeout 5 --max-time 60 \
                --output "$2" "$1" && return
        fi
        sleep "$pause"
    done
    fail 10 "$1 could not be fetched in five attempts" \
        "see above whether this node does not reach it, or may not read it"
}

# run NAME ADDRESS ARGUMENT...: runs a script, and shows what it prints.
run() {
    local name=$1 address=$2 folder script shown last code=0
    shift 2
    folder=$(mktemp --directory)
    fetch "$address" "$folder/script"
    chmod u+x "$folder/script"
    : >"$folder/output"
    "$folder/script" "$@" >"$folder/output" 2>&1 & # no pipe: what it starts in the background would keep it open
    script=$!
    tail --follow --lines +1 --sleep-interval 0.2 --pid "$script" "$folder/output" &
    shown=$!
    wait "$script" || code=$?
    wait "$shown" || true
    if ((code)); then
        if ! grep --quiet 'failed ([0-9]*): .* To do: ' "$folder/output"; then
            last=$(tail --lines 3 "$folder/output" | tr --complement '[:print:]' ' ' | cut --characters 1-300)
            [[ $last ]] || last='no output'
            fail 26 "$name ended with $code after: ${last% }" "correct $name, then deploy again"
        fi
        exit "$code"
    fi
    rm -rf "$folder"
}

mkdir -p "$home/actions"
marks=()
for action in "${@:3}"; do
    words=$(python3 -c "$to_words" "$action")
    eval "words=($words)"
    # shellcheck disable=SC2154 # set by eval
    name=${words[0]} events=" ${words[1]} "
    mark=$home/actions/$(sha256sum <<<"$action" | cut -c1-32)
    marks+=("$mark")
    if [[ $events == *" $event "* || ($event == updated && $events == *" created "* && ! -e $mark) ]]; then
        echo "run_actions.sh: $name"
        run "$name" "${words[@]:2}"
        touch "$mark"
    fi
done
[[ $event != start ]] || exit 0
for mark in "$home/actions"/*; do # what is not among the scripts any more runs again if it comes back
    [[ " ${marks[*]} " == *" $mark "* ]] || rm -f "$mark"
done
