#!/bin/bash
# What the scripts of all nodes share: how they fail, wait, write files and ask EC2. Sourced by the entry scripts.
#
# A failure ends the script with one of these codes, and its last line says what failed and what to do. 1 is anything
# else.
# shellcheck disable=SC2034,SC2154 # shared with the scripts that source this
readonly BAD_ARGUMENT=2 NO_NETWORK=10 BAD_KEY=11 NO_PACKAGE=12 NOT_INSTALLED=13 NO_HEADERS=14 BAD_DRIVER=15 \
    BAD_DEVICES=16 BAD_EFA=17 NO_SPACE=18 LOCKED=19 BAD_PYTHON=20 NOT_MOUNTED=21 NO_SCRATCH=22 WRONG_SYSTEM=23 \
    BAD_ARCHIVE=24 BAD_TEAM=25

# Seconds that a script may take, unless it says otherwise. ParallelCluster gives a node 2,100 to start
# (aws-parallelcluster 3.16.1, pcluster/constants.py, NODE_BOOTSTRAP_TIMEOUT), and its own recipes take some of them.
[[ -v TIME_LIMIT ]] || TIME_LIMIT=1200
readonly TIME_LIMIT
readonly PROGRAM=${0##*/}

umask 022
set -E
trap 'failed_on "${BASH_SOURCE[0]##*/}" "$LINENO" "$BASH_COMMAND"' ERR

# failed_on FILE LINE COMMAND: tells of a failure that nothing here foresees.
failed_on() {
    failure="failed (1): line $2 of $1: $3. To do: fix what the lines above tell, then run $PROGRAM again."
    echo "$PROGRAM: $failure"
    exit 1
}

# fail CODE WHAT TO_DO: ends the script, and leaves in `failure` why. Not for command substitutions, which are processes
# of their own.
fail() {
    failure="failed ($1): $2. To do: $3."
    echo "$PROGRAM: $failure"
    exit "$1"
}

# log TEXT: writes a line of the log, with the seconds that have passed.
log() {
    printf '%s: %d s: %s\n' "$PROGRAM" "$SECONDS" "$1"
}

# parse_arguments "REQUIRED..." "OPTIONAL..." NAME=VALUE...: makes a global variable of each argument.
parse_arguments() {
    local required=$1 optional=$2 argument name
    shift 2
    for argument in "$@"; do
        name=${argument%%=*}
        [[ $argument == ?*=* && " $required $optional " == *" $name "* ]] ||
            fail "$BAD_ARGUMENT" "got the argument '$argument'" "name one of: $required $optional, as name=value"
        printf -v "$name" '%s' "${argument#*=}"
    done
    require_arguments "$required"
}

# require_arguments "NAME...": fails unless each has a value.
require_arguments() {
    local name
    for name in $1; do
        [[ -n ${!name:-} ]] || fail "$BAD_ARGUMENT" "the argument $name= is missing" "give it a value"
    done
}

# limited COMMAND...: runs a program, to the time limit at the longest. What waits for a file system may end
# only when it is killed.
limited() {
    timeout --kill-after=10 "$((TIME_LIMIT > SECONDS ? TIME_LIMIT - SECONDS : 1))" "$@"
}

# is_over: whether the time limit is reached, so that a program may have failed by that alone.
is_over() {
    ((SECONDS >= TIME_LIMIT))
}

# retry CODE WHAT TO_DO COMMAND...: runs a command until it succeeds, after longer and longer pauses; fails when the
# time limit leaves no room for another one. Each pause is up to half as long again by chance: nodes that start together
# do not ask again together.
retry() {
    local code=$1 what=$2 to_do=$3 pause=5 jittered
    shift 3
    until "$@"; do
        jittered=$((pause + RANDOM % (pause / 2 + 1)))
        ((SECONDS + jittered < TIME_LIMIT)) || fail "$code" "$what" "$to_do"
        log "$what; once more in $jittered s"
        sleep "$jittered"
        pause=$((pause < 30 ? 2 * pause : 60))
    done
}

# write_file PATH MODE: makes standard input, a text, the content of a file, at once, unless it already is.
write_file() {
    local text new="${1%/*}/.${1##*/}.new"
    text=$(cat && echo .) # the dot keeps the last newlines
    if [[ ! -f $1 || $(cat "$1" && echo .) != "$text" || $(stat --format=%a "$1") != "$2" ]]; then
        install --directory --mode=755 "${1%/*}"
        printf '%s' "${text%.}" >"$new"
        chmod "$2" "$new"
        mv "$new" "$1"
        log "wrote $1"
    fi
}

# set_link TARGET LINK: lets a symbolic link lead to a target, at once, unless it already does.
set_link() {
    [[ $(readlink "$2") != "$1" ]] || return 0
    ln --symbolic --force --no-dereference "$1" "$2.new"
    mv --no-target-directory "$2.new" "$2"
}

# fetch_object ADDRESS FILE: fetches an object of S3, for `retry`: one that is not there will not come while we wait.
fetch_object() {
    local output
    output=$(limited aws s3 cp --region "$region" --only-show-errors "$1" "$2" 2>&1) && return
    echo "$output"
    [[ $output != *"(404)"* && $output != *NoSuchBucket* ]] ||
        fail "$BAD_ARCHIVE" "$1 does not exist" "deploy again, which uploads it"
    return 1
}

# get_metadata PATH: sets `metadata` to what EC2 tells of this instance
# (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html).
get_metadata() {
    retry "$NO_NETWORK" "the instance metadata service does not tell $1" \
        "see whether the instance has it switched off (aws ec2 modify-instance-metadata-options)" request_metadata "$1"
}

request_metadata() {
    local service=http://169.254.169.254/latest token
    token=$(curl --silent --show-error --fail --max-time 5 --request PUT \
        --header "X-aws-ec2-metadata-token-ttl-seconds: 60" "$service/api/token") &&
        metadata=$(curl --silent --show-error --fail --max-time 5 \
            --header "X-aws-ec2-metadata-token: $token" "$service/meta-data/$1")
}

# check_space DIRECTORY GIB: fails unless the file system of a directory has that much space left.
check_space() {
    local available
    available=$(limited df --output=avail --block-size=1G "$1" | tail -n 1) || not_mounted "$1"
    ((available >= $2)) || fail "$NO_SPACE" "$1 has ${available// /} GiB left, $2 are needed" \
        "delete what nobody needs there, or make it larger"
}

# check_mounted DIRECTORY: fails unless a file system is mounted there and can be written.
check_mounted() {
    limited mountpoint --quiet "$1" || not_mounted "$1"
    limited test -w "$1/." || not_mounted "$1"
}

not_mounted() {
    fail "$NOT_MOUNTED" "the file system $1 is not mounted, read-only, or gives no answer" \
        "see whether the file system exists and its security group lets nodes in: journalctl -b, mount -v $1"
}

# use_system: sets `os` to name and version of the operating system and loads the functions for its packages.
use_system() {
    # shellcheck source=/dev/null
    os=$(source /etc/os-release && echo "$ID$VERSION_ID")
    source "$here/lib/packages.sh"
    case $os in
        ubuntu22.04 | ubuntu24.04) source "$here/lib/packages_apt.sh" ;;
        amzn2023) source "$here/lib/packages_dnf.sh" ;;
        *) fail "$WRONG_SYSTEM" "this is $os" "use Ubuntu 24.04, Ubuntu 22.04 or Amazon Linux 2023" ;;
    esac
}

# remember NAME=VALUE...: keeps a script that runs this one again, by hand, whatever becomes of this run.
remember() {
    printf '%q ' exec bash "/opt/ultracluster/current/$PROGRAM" "$@" | write_file /var/lib/ultracluster/run_again.sh 755
}

# record NAME=VALUE...: keeps what is known of the node, for health checks; the last step of each script.
record() {
    printf '%s\n' "$@" | write_file /var/lib/ultracluster/node.env 644
    log "done"
}
