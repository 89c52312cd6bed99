#!/bin/bash
# Looks whether the node is fit for a job. Argument: prolog or epilog; Slurm runs it as root before and after each job
# (https://slurm.schedmd.com/prolog_epilog.html).
#
# Exit code 0: nothing was found. 1: the node is drained, and its reason says why. Slurm then requeues the job of a
# prolog, which ParallelCluster lets start elsewhere at once (SchedulerParameters=nohold_on_prolog_fail in
# https://github.com/aws/aws-parallelcluster-cookbook, slurm.conf.erb).
#
# A prolog takes less than 10 s whatever hangs; a test adds the limits up. An error of this script itself drains nothing:
# it would drain all nodes.
#
# The environment may name another root directory for sysfs, proc and what the node was given (HEALTH_ROOT).
set -uo pipefail

here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
source "$here/findings.sh"
source "$here/probes.sh"
source "$here/processes.sh"
source "$here/../lib/instance_types.sh"
source "$here/../install/verification.sh" # count_amazon, expected_efa

export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin:/opt/slurm/bin
readonly ROOT=${HEALTH_ROOT:-}
readonly NODE_FACTS=$ROOT/var/lib/ultracluster/node.env
# Codes that drain no node, one a line. The head node shares the directory with all nodes.
readonly IGNORED=$ROOT/opt/slurm/etc/ultracluster_ignored_findings
# Each has a function probe_... and is also the finding that this one gives no answer.
readonly PROBES=(NEURON_DRIVER EFA_DEVICES KERNEL_LOG SHARED_STORAGE SCRATCH STALE_PROCESS)
readonly PATIENCE=5 # seconds
node=${SLURMD_NODENAME:-$(uname -n)}
node=${node%%.*}

# report CODE WHAT: tells of a finding, and keeps it unless its code is to be ignored.
report() {
    if is_ignored "$1"; then
        echo "ultracluster: $1: $2 (ignored)"
    else
        findings+=("$1: $2 (${FINDINGS[$1]#* })")
        echo "ultracluster: ${findings[-1]}"
    fi
}

# is_ignored CODE: whether findings of this code drain no node. The file is looked at once, if there is a finding at all;
# it is on the head node's disk, so it may hang, too.
is_ignored() {
    [[ -v ignored ]] || read -r -d '' -t 1 ignored < <(exec 2>/dev/null </dev/null && cat "$IGNORED")
    [[ $'\n'$ignored$'\n' == *$'\n'"$1"$'\n'* ]]
}

# read_facts: sets what the node was given when it started, and what its instance type has.
read_facts() {
    local name value
    queue='' mount_dir='' scratch_dir='' without_efa='' types='' instance_type=''
    [[ -r $NODE_FACTS ]] || return
    while IFS='=' read -r name value; do
        case $name in
            queue | mount_dir | scratch_dir | without_efa | types | instance_type) printf -v "$name" '%s' "$value" ;;
        esac
    done <"$NODE_FACTS"
    [[ -n $queue && -n $mount_dir && -n $scratch_dir && -n $instance_type ]] &&
        look_up_instance_type "$instance_type" "$types"
}

# examine: sets `findings` to what the probes find, side by side.
examine() {
    local code deadline
    local -A answers=()
    findings=()
    if ! read_facts; then
        report NODE_UNKNOWN "$NODE_FACTS does not tell what the node is"
        return
    fi
    for code in "${PROBES[@]}"; do
        ask "$code"
    done
    deadline=$((SECONDS + PATIENCE))
    for code in "${PROBES[@]}"; do
        collect "$code"
    done
}

# ask CODE: starts a probe. It may hang where no signal reaches it, so nobody waits for it; slurmd neither, which waits
# for the end of its output, as long as the probe does not keep it open.
ask() {
    local answer
    exec {answer}< <(exec 2>/dev/null </dev/null && "probe_${1,,}" && echo "done")
    answers[$1]=$answer
}

# collect CODE: takes what a probe found; past the deadline, what it has found already.
collect() {
    local finding what left
    while left=$((SECONDS < deadline ? deadline - SECONDS : 0)).1 &&
        read -r -t "$left" -u "${answers[$1]}" finding what; do
        [[ $finding != "done" ]] || return
        report "$finding" "${what//[^[:print:]]/?}"
    done
    report "$1" "the check gave no answer"
}

# worst: prints the finding for the reason of the node: the first critical one, or else the first.
worst() {
    local finding others=$((${#findings[@]} - 1))
    for finding in "${findings[@]}" "${findings[0]}"; do
        [[ ${FINDINGS[${finding%%:*}]} != critical* ]] || break
    done
    echo "ultracluster: $finding$( ((others == 0)) || echo ", $others more in slurmd.log")"
}

# reloading_may_do: whether there are findings, and a new load of the driver may end them all.
reloading_may_do() {
    local finding
    for finding in "${findings[@]}"; do
        [[ ${FINDINGS[${finding%%:*}]} == *" reload-driver" ]] || return
    done
    ((${#findings[@]}))
}

case ${1:-} in
    prolog)
        examine
        ;;
    epilog)
        end_processes_of_user
        examine
        if reloading_may_do && [[ -z $(running_jobs) ]] && reload_driver; then
            examine
        fi
        ;;
    *)
        echo "check.sh: got the argument '${1:-}'; allowed are prolog and epilog"
        exit 2
        ;;
esac
((${#findings[@]})) || exit 0
# ParallelCluster replaces the reason within a minute or so, not the comment, by which the head node counts drained nodes.
timeout 2 scontrol update "nodename=$node" state=drain "reason=$(worst)" "comment=ultracluster: drained at $EPOCHSECONDS"
exit 1
