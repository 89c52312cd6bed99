#!/bin/bash
# Processes that jobs left, and the driver that they hold. Sourced.
# shellcheck disable=SC2154 # check.sh has these variables

# running_jobs: prints the processes of all jobs on the node but the one that ends. Asks the slurmstepd of each step,
# not the controller (man scontrol, listpids).
running_jobs() {
    timeout 2 scontrol listpids 2>/dev/null | awk -v job="${SLURM_JOB_ID:-}" 'NR > 1 && $2 != job { print $1 }'
}

# without_running_jobs: leaves out of a list of processes those of running jobs.
without_running_jobs() {
    grep --invert-match --line-regexp --fixed-strings --file=<(running_jobs)
}

# holders: prints the processes that have Neuron devices open, but for those of running jobs and AWS's own monitors.
holders() {
    local process
    find "$ROOT"/proc/[0-9]*/fd -lname '/dev/neuron*' 2>/dev/null | sed -E 's|.*/([0-9]+)/fd/.*|\1|' | sort --unique |
        without_running_jobs | while read -r process; do
        [[ $(<"$ROOT/proc/$process/comm") == neuron-@(monitor|top) ]] || echo "$process"
    done
}

# end_processes_of_user: kills what the job's user still runs outside of other jobs. Users of the system have no jobs.
end_processes_of_user() {
    local left
    ((${SLURM_JOB_UID:-0} >= 1000)) || return
    for _ in 1 2 3; do
        mapfile -t left < <(pgrep --uid "$SLURM_JOB_UID" | without_running_jobs)
        ((${#left[@]})) || return
        kill -KILL "${left[@]}"
        sleep 0.5 # the driver takes back what they held
    done
}

# reload_driver: loads the driver again, which sets its counters to 0. AWS's monitors make room for it. The service of
# the metrics, where there is one, tells of the counters as it stops, and starts again.
reload_driver() {
    local service=ultracluster-metrics.service status
    systemctl --quiet is-enabled "$service" 2>/dev/null || service=''
    [[ -z $service ]] || timeout 30 systemctl stop "$service"
    if pkill -TERM --exact 'neuron-(monitor|top)'; then
        sleep 0.5
    fi
    timeout 60 modprobe --remove neuron && timeout 60 modprobe neuron
    status=$?
    [[ -z $service ]] || systemctl --no-block start "$service"
    return "$status"
}
