#!/bin/bash
# What the jobs share. Sourced by compile.sbatch and train.sbatch, which have set `jobs`.
# shellcheck disable=SC2034,SC2154 # shared with the scripts that source this
jobs=$(cd -P "$jobs" && pwd) # one version from now on, even if the link moves on
export PATH # bash has one even where Slurm gives the job none

say() {
    printf '%s %s: %s\n' "$(date --utc +%FT%TZ)" "$SLURM_JOB_NAME" "$1"
}

# use_output OPTION...: sets `output` to the run directory that the options name, which then exists, `outcome` to the file
# with which nodes tell how the program ended, and `status` to 2 if they cannot be written, otherwise to 0.
use_output() {
    local options=("$@") index
    output=''
    for index in "${!options[@]}"; do
        case ${options[index]} in
            --output) output=${options[index + 1]:-} ;;
            --output=*) output=${options[index]#*=} ;;
        esac
    done
    outcome=$output/.outcome-$SLURM_JOB_ID
    status=0
    if [[ -z $output ]] || ! mkdir --parents "$output" || ! echo >"$outcome"; then
        say "--output: got '$output'; allowed: a directory on the shared file system that you may write, with space left"
        status=2
    fi
}

# run_step PURPOSE OPTION...: runs the program on all nodes and sets `status` to how it ended. In a job that was submitted
# with --export=NONE, a step would otherwise have no environment at all, not even PATH (man srun, SLURM_EXPORT_ENV).
run_step() {
    local step
    rm --force "$outcome"
    srun --export=ALL --kill-on-bad-exit=1 --cpu-bind=none bash "$jobs/run_node.sh" "$1" "$outcome" "${@:2}" &
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
