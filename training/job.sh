#!/bin/bash
# What the jobs share. Sourced by compile.sbatch and train.sbatch, which have set `jobs`.
# shellcheck disable=SC2034,SC2154 # shared with the scripts that source this
jobs=$(cd -P "$jobs" && pwd) # one version from now on, even if the link moves on
export PATH # bash has one even where Slurm gives the job none

say() {
    printf '%s %s: %s\n' "$(date --utc +%FT%TZ)" "$SLURM_JOB_NAME" "$1"
}

# use_output DIRECTORY: sets `output` to the run's directory, which then exists, `outcome` to the file with which nodes
# tell how the program ended, and `status` to 2 if they cannot be written, otherwise to 0.
use_output() {
    output=$1
    # The task of an array has a directory of its own in that of the array.
    [[ -z ${SLURM_ARRAY_TASK_ID:-} ]] || output=$output/$SLURM_ARRAY_TASK_ID
    outcome=$output/.outcome-$SLURM_JOB_ID
    status=0
    if [[ $output != /* ]] || ! mkdir --parents "$output" || ! echo >"$outcome"; then
        say "got '$output'; allowed: a directory on the shared file system that you may write, with space left"
        status=2
    fi
    rm --force "$outcome"
    export ULTRACLUSTER_RUN=$output
}

# use_program DIRECTORY: sets what its program.toml says (ultracluster_job/program.py) and exports its environment; ends
# with 2 if it cannot be used.
use_program() {
    local facts each python=python3
    if ! python3 -c "import tomllib" 2>/dev/null; then # before Python 3.11 the environment has what reads TOML
        # shellcheck source=/dev/null
        [[ -n ${ULTRACLUSTER_PYTHON:-} ]] || source /etc/profile.d/ultracluster.sh
        python=$ULTRACLUSTER_PYTHON/bin/python
    fi
    facts=$(cd "$jobs" && "$python" -m ultracluster_job.program --shell "$1") || exit 2
    program_run=() program_compile=() program_environment=() program_workers='' program_checkpoints='' program_stop_file=''
    code_bad_input='' code_diverged='' code_stopped=''
    eval "$facts" # which sets all of them
    for each in "${program_environment[@]}"; do
        [[ -v ${each%%=*} ]] || export "${each?}"
    done
    export ULTRACLUSTER_PROGRAM=$1 ULTRACLUSTER_CHECKPOINTS=$program_checkpoints ULTRACLUSTER_STOP_FILE=$program_stop_file
    export WORKERS_PER_NODE=${WORKERS_PER_NODE:-${program_workers:-32}}
}

# name_graphs OPTION...: exports a name for all graphs that the program has with these options on these nodes.
name_graphs() {
    local words=("$ULTRACLUSTER_PROGRAM" "$SLURM_JOB_NUM_NODES" "$WORKERS_PER_NODE" "${NEURON_CC_FLAGS:-}" "$@")
    read -r ULTRACLUSTER_GRAPHS _ < <(printf '%s\0' "${words[@]}" | sha256sum)
    export ULTRACLUSTER_GRAPHS
}

# run_step PURPOSE OPTION...: runs the program on all nodes and sets `status` to how it ended. In a job that was submitted
# with --export=NONE, a step would otherwise have no environment at all, not even PATH (man srun, SLURM_EXPORT_ENV).
run_step() {
    local step words
    words=("${program_run[@]//'{output}'/$ULTRACLUSTER_RUN}")
    words=("${words[@]//'{nodes}'/$SLURM_JOB_NUM_NODES}")
    words=("${words[@]//'{workers_per_node}'/$WORKERS_PER_NODE}")
    rm --force "$outcome"
    srun --export=ALL --kill-on-bad-exit=1 --cpu-bind=none bash "$jobs/run_node.sh" "$1" "$outcome" "$code_stopped" \
        "${words[@]}" "${@:2}" &
    step=$!
    while true; do
        status=0
        wait "$step" || status=$?
        # A signal that the job catches ends the waiting, too.
        if ((status <= 128)) || ! kill -0 "$step" 2>/dev/null; then
            break
        fi
    done
    [[ ! -s $outcome ]] || read -r status <"$outcome"
    rm --force "$outcome"
}
