#!/bin/bash
# What each node of a job does, as a step of it: srun bash run_node.sh compile|train OUTCOME STOPPED WORD...
#
# It starts WORKERS_PER_NODE workers, each of which runs Python with these words in the program's folder. The node where the program ended first writes
# its exit code to the file OUTCOME: srun mixes the codes of all nodes. A stop with a checkpoint (the code STOPPED) ends the step well,
# because srun must not kill nodes that are a moment slower. What is known of a run that stands still goes to the directory
# stalls next to OUTCOME, in one directory for each start of the job.
#
# WORKER_FIFO_PRIORITY, 1 to 99: trains under the kernel's real-time policy SCHED_FIFO (docs/guides/train.md tells the risk).
# Unset, the default, is AWS's, too, which calls it an experiment against a loss of up to 10 % of BERT's throughput from
# kernel 6.8 on (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/components/pytorch.html).
set -euo pipefail

here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
purpose=$1 outcome=$2 stopped=$3
shift 3

source "$here/environment.sh"
# A program imports ultracluster_job, and the package that its folder is.
export PYTHONPATH=$here:${ULTRACLUSTER_PROGRAM%/*}${PYTHONPATH:+:$PYTHONPATH}
ULTRACLUSTER_NODES=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste --serial --delimiters=' ')
export ULTRACLUSTER_NODES ULTRACLUSTER_STALLS=${outcome%/*}/stalls/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
cd "$ULTRACLUSTER_PROGRAM"
bash "$here/compile_cache.sh" fetch || echo "run_node.sh: no compiled graphs were fetched: this node compiles what it needs"
# How long a rank may be silent until the first steps are made: compiling takes most of an hour, loading some minutes.
start_seconds=7200
if [[ $purpose == train ]] && bash "$here/compile_cache.sh" has "$ULTRACLUSTER_GRAPHS"; then
    start_seconds=1200
fi
export ULTRACLUSTER_START_SECONDS=${ULTRACLUSTER_START_SECONDS:-$start_seconds}

command=("$ULTRACLUSTER_PYTHON/bin/python" -m ultracluster_job.launch --nnodes "$SLURM_JOB_NUM_NODES"
    --node-rank "$SLURM_NODEID" --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" --nproc-per-node "$WORKERS_PER_NODE"
    --max-restarts 0)
if [[ $1 == -m ]]; then
    command+=(--module "${@:2}")
else
    command+=("$ULTRACLUSTER_PROGRAM/$1" "${@:2}")
fi
# The CPU has no compiler to feed: the same steps run by themselves.
if [[ $purpose == compile && ! " $* " =~ " --backend"[\ =]"cpu " ]]; then
    command=("$ULTRACLUSTER_PYTHON/bin/neuron_parallel_compile" "${command[@]}")
fi
if [[ $purpose == train && ${WORKER_FIFO_PRIORITY:-} ]]; then
    scheduler=(chrt --fifo "$WORKER_FIFO_PRIORITY")
    if error=$("${scheduler[@]}" true 2>&1); then
        command=("${scheduler[@]}" "${command[@]}")
    else
        echo "run_node.sh: $(uname -n) trains without WORKER_FIFO_PRIORITY=$WORKER_FIFO_PRIORITY: ${error##*$'\n'}"
    fi
fi

status=0
"${command[@]}" || status=$?
if ((status)); then
    (set -o noclobber && echo "$status" >"$outcome") 2>/dev/null || true
fi
# What was compiled is kept, however the program ended. A compile job is there for that; a training job must not wait
# longer than a minute for it: other nodes wait, or the time limit is near.
if [[ $purpose == compile ]]; then
    # Graphs of a program that failed are not all.
    name=("$ULTRACLUSTER_GRAPHS")
    ((status == 0)) || name=()
    bash "$here/compile_cache.sh" publish "${name[@]}" || status=$((status ? status : 1))
else
    timeout 60 bash "$here/compile_cache.sh" publish ||
        echo "run_node.sh: not all graphs were kept: other nodes may compile them again"
fi
((status == stopped)) || exit "$status"
