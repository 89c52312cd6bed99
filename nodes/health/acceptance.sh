#!/bin/bash
#SBATCH --job-name=acceptance
#SBATCH --exclusive
#SBATCH --time=8:00:00
# Measures the network between nodes with an all-reduce over all of them, and finds the nodes that slow it down. A job
# of two nodes or more, best of four or more, for anybody, from the head node or a login node:
#
#   sbatch --nodes=16 /opt/ultracluster/current/health/acceptance.sh
#
# It prints a table of its runs and writes acceptance-JOB.json, both after each run. Exit code 0: the floor is reached.
# 1: these nodes are bad. 2: it cannot run. 3: the floor is not reached, and it cannot tell which nodes are the reason.
#
# Environment: ACCEPTANCE_FLOOR is another floor in GB/s, ACCEPTANCE_TIMEOUT another limit in seconds for one run.
set -uo pipefail

# shellcheck source=../lib/instance_types.sh
source /opt/ultracluster/current/lib/instance_types.sh # Slurm runs a copy of this script

# Least bus bandwidth in GB/s (in fact 2^30 bytes) by instance type, for all-reduces of 1 GiB. ASSUMPTIONS, not measured
# by us: 60 % of the 47.09 GB/s that AWS's example shows for two trn1.32xlarge
# (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/nccom-test.html), and twice as much
# with twice the EFA devices. Set ACCEPTANCE_FLOOR to what your good nodes reach.
declare -Ar FLOORS=([trn1.32xlarge]=28 [trn1n.32xlarge]=56)

export PATH=$PATH:/opt/aws/neuron/bin:/opt/amazon/openmpi/bin
# As AWS sets it for training on several nodes (https://github.com/aws-neuron/aws-neuron-samples, dp_bert_hf_pretrain).
export FI_PROVIDER=efa FI_EFA_USE_DEVICE_RDMA=1 FI_EFA_FORK_SAFE=1
readonly ALL_REDUCE=(--minbytes 1GB --maxbytes 1GB --datatype fp32 --non-interactive all_reduce)
readonly PORT=48620 # no outgoing connection takes it: compute_node.sh reserves it

refuse() {
    echo "acceptance.sh: $1"
    exit 2
}

# has_slurm_mode: whether this nccom-test can run through Slurm by itself, as that of Neuron SDK 2.28 can
# (https://github.com/aws-neuron/aws-neuron-sdk/blob/v2.28.1/tools/neuron-sys-tools/nccom-test.rst).
# Its help is read to the end: `grep --quiet` leaves early, and SIGPIPE would count as a failure.
has_slurm_mode() {
    [[ $(timeout 60 nccom-test --help 2>&1) == *--slurm-mode* ]]
}

# by_slurm NODE...: runs an all-reduce over all nodes of the job in the Slurm mode of nccom-test. Nodes within a job cannot
# be chosen in it.
by_slurm() {
    timeout --kill-after=10 "$limit" \
        nccom-test --nworkers $((cores * $#)) --nnodes $# "${ALL_REDUCE[@]}" --slurm-mode --slurm-job-id "$SLURM_JOB_ID"
}

# by_mpi NODE...: runs an all-reduce over nodes.
#
# It starts on the first node, as AWS's page has it (see above). From there Open MPI starts the others through Slurm, so
# nobody needs keys for ssh (https://docs.open-mpi.org/en/v5.0.x/launching-apps/slurm.html). It uses the nodes that have
# tasks by SLURM_TASKS_PER_NODE (https://github.com/open-mpi/ompi/blob/v4.1.x/orte/mca/ras/slurm/ras_slurm_module.c):
# those of the job, not the single one of this step.
by_mpi() {
    NEURON_RT_ROOT_COMM_ID="$(address "$1"):$PORT" timeout --kill-after=10 "$limit" \
        srun --export=ALL --overlap --cpu-bind=none --nodes=1 --ntasks=1 --nodelist="$1" \
        env SLURM_TASKS_PER_NODE="$SLURM_TASKS_PER_NODE" \
        nccom-test --nworkers $((cores * $#)) --nnodes $# "${ALL_REDUCE[@]}" --hosts "$@"
}

# measure MODE NODE...: runs an all-reduce over nodes, by slurm or by mpi, and keeps it in `runs`. Succeeds if the floor is
# reached.
measure() {
    local mode=$1 output bandwidth passed=false
    shift
    if [[ $mode == slurm ]]; then
        output=$(by_slurm "$@" 2>&1)
    else
        output=$(by_mpi "$@" 2>&1)
    fi
    bandwidth=$(sed -nE 's|^Avg bus bandwidth:\s*([0-9.]+)GB/s\s*$|\1|p' <<<"$output")
    if [[ -z $bandwidth ]]; then
        echo "$output"
        end_processes "$@"
    elif awk "BEGIN { exit !($bandwidth >= $floor) }"; then
        passed=true
    fi
    printf '%-8s %8s GB/s  by %-5s  %s\n' \
        "$([[ $passed == true ]] && echo good || echo bad)" "${bandwidth:--}" "$mode" "$*"
    runs+=("{\"nodes\": $(json_list "$@"), \"mode\": \"$mode\", \"bandwidth\": ${bandwidth:-null}, \"passed\": $passed}")
    report unfinished
    [[ $passed == true ]]
}

# address NODE: prints its IPv4 address, which the runtime wants for the first node.
address() {
    getent ahostsv4 "$1" | awk 'NR == 1 { print $1 }'
}

# end_processes NODE...: ends what a run that failed may have left on its nodes.
end_processes() {
    timeout --kill-after=10 60 \
        srun --overlap --nodes=$# --ntasks-per-node=1 --nodelist="$(IFS=, && echo "$*")" \
        pkill -KILL --exact --uid "$(id --user)" neuron-bench
}

# search NODE...: divides nodes that are bad together, until what is bad is a pair or a single node.
search() {
    local half=$((($# + 1) / 2))
    if (($# <= 2)); then
        suspects+=("$@")
        return
    fi
    look_into "${@:1:half}"
    look_into "${@:half+1}"
}

look_into() {
    if (($# == 1)); then
        suspects+=("$1")
    elif measure mpi "$@"; then
        good+=("$@")
    else
        search "$@"
    fi
}

# judge: tries each suspect together with a good node.
judge() {
    local node
    ((${#good[@]})) || find_good || return
    for node in "${suspects[@]}"; do
        [[ " ${good[*]} " == *" $node "* ]] || measure mpi "$node" "${good[0]}" || bad+=("$node")
    done
}

# find_good: where every group was bad, looks for two suspects that are good together. The first two suspects were bad
# together; if one of them is good, another good one shows it. At most 12 runs.
find_good() {
    local one other
    for other in "${suspects[@]:2:6}"; do
        for one in "${suspects[@]:0:2}"; do
            measure mpi "$one" "$other" && good=("$one" "$other") && return
        done
    done
    return 1
}

json_list() {
    local list
    printf -v list ', "%s"' "$@"
    echo "[${list:2}]"
}

# report VERDICT: writes the results for programs.
report() {
    local list
    printf -v list ',\n    %s' "${runs[@]}"
    cat >"acceptance-$SLURM_JOB_ID.json" <<JSON
{
  "job": $SLURM_JOB_ID,
  "instance_type": "$instance_type",
  "floor": $floor,
  "verdict": "$1",
  "bad": $( ((${#bad[@]})) && json_list "${bad[@]}" || echo "[]"),
  "runs": [${list:1}
  ]
}
JSON
}

[[ -n ${SLURM_JOB_ID:-} ]] || refuse "this is a job: sbatch --nodes=4 $0"
((SLURM_JOB_NUM_NODES >= 2)) || refuse "got 1 node; it takes 2 to measure between, and 4 to tell which one is bad"
command -v nccom-test >/dev/null || refuse "nccom-test is not installed: are these nodes with Neuron devices?"
instance_type=$(sed -n 's/^instance_type=//p' /var/lib/ultracluster/node.env)
look_up_instance_type "${instance_type:-none}" "$(sed -n 's/^types=//p' /var/lib/ultracluster/node.env)"
floor=${ACCEPTANCE_FLOOR:-${FLOORS[${instance_type:-none}]:-}}
limit=${ACCEPTANCE_TIMEOUT:-600}
[[ $floor =~ ^[0-9]+(\.[0-9]+)?$ ]] ||
    refuse "got the floor '$floor' for ${instance_type:-an unknown type}; set ACCEPTANCE_FLOOR to a number of GB/s"

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
runs=() good=() bad=() suspects=()
echo "All-reduce of 1 GiB over ${#nodes[@]} $instance_type, floor $floor GB/s"
if has_slurm_mode; then
    echo "nccom-test starts all nodes in its Slurm mode, groups of them through Open MPI"
    mode=slurm
else
    echo "nccom-test starts nodes through Open MPI: it has no Slurm mode"
    mode=mpi
fi
if measure "$mode" "${nodes[@]}"; then
    report good
    exit 0
fi
if [[ $mode == slurm && ${runs[0]} == *'"bandwidth": null'* ]]; then
    echo "Nothing was measured in the Slurm mode: the same through Open MPI, in case the mode is the reason"
    if measure mpi "${nodes[@]}"; then
        report good
        exit 0
    fi
fi
search "${nodes[@]}"
judge
if ((${#bad[@]})); then
    report bad-nodes
    echo "Bad nodes: ${bad[*]}. As root: scontrol update nodename=$(IFS=, && echo "${bad[*]}") state=drain reason=acceptance"
    exit 1
fi
report unknown
if ((${#good[@]})); then
    echo "All nodes together do not reach the floor, but each suspect does with the good node ${good[0]}: see docs/guides/acceptance.md."
else
    echo "No two nodes that were tried reach the floor, so it cannot tell which are bad: see docs/guides/acceptance.md."
fi
exit 3
