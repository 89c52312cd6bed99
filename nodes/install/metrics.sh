#!/bin/bash
# The service that sends metrics to CloudWatch. Sourced by the scripts of compute nodes and the head node.
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

readonly METRICS_UNIT=/etc/systemd/system/ultracluster-metrics.service

# set_metrics MODULE: switches the service on or off, as $metrics says; what it runs.
set_metrics() {
    local unit
    unit=$(metrics_unit "$1")
    if [[ $metrics != on ]]; then
        remove_metrics
        return
    fi
    # Another bundle has another unit; whatever of this a kill leaves out, the next run does.
    [[ ! -e $METRICS_UNIT || $(<"$METRICS_UNIT") == "$unit" ]] || remove_metrics
    write_file "$METRICS_UNIT" 644 <<<"$unit"
    systemctl --quiet daemon-reload
    systemctl --quiet enable --now "${METRICS_UNIT##*/}"
}

remove_metrics() {
    [[ -e $METRICS_UNIT ]] || return 0
    systemctl --quiet disable --now "${METRICS_UNIT##*/}"
    rm "$METRICS_UNIT"
    systemctl --quiet daemon-reload
    log "removed $METRICS_UNIT"
}

# metrics_unit MODULE: prints the unit. Training comes first: the service has a quarter of one processor at most, and
# where a job wants that one too, a fifth of the job's share (man systemd.resource-control). It is bound to no single
# processor, for one rank of a job would have to share just that one. It runs as root, as neuron-monitor sees only then
# what all users do.
metrics_unit() {
    cat <<UNIT
[Unit]
Description=Metrics of this node to CloudWatch
Wants=network-online.target
After=network-online.target remote-fs.target
StartLimitIntervalSec=0

[Service]
Environment=PATH=/opt/slurm/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WorkingDirectory=$(cd "$here" && pwd -P)
ExecStart=/usr/bin/python3 -Bu -m metrics.$1 $region $cluster${queue:+ $queue}${budget:+ $mount_dir $budget}
Restart=always
RestartSec=60
TimeoutStopSec=20
CPUWeight=20
CPUQuota=25%
MemoryMax=512M

[Install]
WantedBy=multi-user.target
UNIT
}
