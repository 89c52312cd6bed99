#!/bin/bash
# What the jobs share. Sourced by compile.sbatch and train.sbatch, which have set `jobs`.
# shellcheck disable=SC2034,SC2154 # shared with the scripts that source this
jobs=$(cd -P "$jobs" && pwd) # one version from now on, even if the link moves on
export PATH # bash has one even where Slurm gives the job none
shopt -u patsub_replacement 2>/dev/null || true # bash 5.2: & in a path would be the word that it takes the place of

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
    if [[ $output != /* ]] || ! mkdir --parents "$output" || [[ ! -O $output ]] || ! echo >"$outcome"; then
        say "got '$output'; allowed: a directory of yours on the shared file system, with space left"
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

# filled WORD...: sets `words` to these, with what their placeholders stand for.
filled() {
    words=("${@//'{output}'/$ULTRACLUSTER_RUN}")
    words=("${words[@]//'{nodes}'/$SLURM_JOB_NUM_NODES}")
    words=("${words[@]//'{workers_per_node}'/$WORKERS_PER_NODE}")
}

# run_step PURPOSE OPTION...: runs the program on all nodes and sets `status` to how it ended. In a job that was submitted
# with --export=NONE, a step would otherwise have no environment at all, not even PATH (man srun, SLURM_EXPORT_ENV).
run_step() {
    local step words all again
    filled "${program_run[@]}"
    all=("${words[@]}" "${@:2}")
    if [[ $1 == compile ]]; then
        filled "${program_compile[@]}"
        all+=("${words[@]}")
    fi
    rm --force "$outcome"
    srun --export=ALL --kill-on-bad-exit=1 --cpu-bind=none bash "$jobs/run_node.sh" "$1" "$outcome" "$code_stopped" \
        "${all[@]}" &
    step=$!
    while true; do
        status=0
        wait "$step" || status=$?
        # A signal that the job catches ends the waiting, too.
        ((status > 128)) || break
        if ! kill -0 "$step" 2>/dev/null; then
            again=0
            wait "$step" 2>/dev/null || again=$? # 127: it was the step's own code
            ((again == 127)) || status=$again
            break
        fi
    done
    [[ ! -s $outcome ]] || read -r status <"$outcome"
    rm --force "$outcome"
}
