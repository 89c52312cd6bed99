#!/bin/bash
# What the head node alone has: health checks around jobs, a Slurm that comes back, the unit that builds the software of
# training jobs, and a mark on its volume. Sourced by head_node.sh.
# shellcheck disable=SC2154 # the entry script has these variables from its arguments

readonly SOFTWARE_UNIT=/etc/systemd/system/ultracluster-software.service

# add_slurm_hooks: compute nodes mount /opt/slurm, and ParallelCluster runs what is in these directories around each job
# (https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-prolog-epilog-v3.html).
add_slurm_hooks() {
    local when
    for when in prolog epilog; do
        write_file "/opt/slurm/etc/scripts/$when.d/50_ultracluster" 755 <<HOOK
#!/bin/bash
check=/opt/ultracluster/current/health/check.sh
[[ ! -f \$check ]] || exec bash "\$check" $when
HOOK
    done
}

# keep_slurm_running: ParallelCluster's units leave a slurmdbd that was killed or has crashed, and give up a controller
# that has failed five times, a second apart (aws-parallelcluster-cookbook#2838, since 3.12.0; systemd's StartLimitBurst).
# After ten minutes without a controller its nodes end themselves.
keep_slurm_running() {
    local daemon
    for daemon in slurmctld slurmdbd; do
        write_file "/etc/systemd/system/$daemon.service.d/50-ultracluster.conf" 644 <<UNIT
[Service]
Restart=on-failure
RestartSec=5
UNIT
    done
}

# start_software_unit NAME=VALUE...: starts software.sh with these arguments, and does not wait for it. A build with the
# same arguments that is in progress is left alone; one with others is replaced.
start_software_unit() {
    local unit action=start
    unit=$(software_unit "$@")
    [[ -e $SOFTWARE_UNIT && $(<"$SOFTWARE_UNIT") == "$unit" ]] || action=restart
    write_file "$SOFTWARE_UNIT" 644 <<<"$unit"
    systemctl --quiet daemon-reload
    systemctl --quiet enable "${SOFTWARE_UNIT##*/}"
    systemctl --quiet "$action" --no-block "${SOFTWARE_UNIT##*/}"
}

# remove_software_unit: ends a build, and starts no other. What was built stays: jobs may use it.
remove_software_unit() {
    [[ -e $SOFTWARE_UNIT ]] || return 0
    systemctl --quiet disable --now "${SOFTWARE_UNIT##*/}"
    rm "$SOFTWARE_UNIT"
    systemctl --quiet daemon-reload
    log "removed $SOFTWARE_UNIT"
}

# software_unit NAME=VALUE...: prints the unit. It also runs at each start of the node, which finishes a build that was
# interrupted. A build that is killed is repeated; one that fails has tried for an hour, and waits for somebody:
# systemctl restart ultracluster-software. Slurm's controller on this node comes first.
software_unit() {
    cat <<UNIT
[Unit]
Description=Builds the Python environment and the programs of training jobs
Wants=network-online.target
After=network-online.target remote-fs.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=/bin/bash $(cd "$here" && pwd -P)/software.sh $*
Restart=on-abnormal
RestartSec=10
CPUWeight=20
IOWeight=20

[Install]
WantedBy=multi-user.target
UNIT
}

# mark_root_volume: tags the volume that was made with this instance. aws-parallelcluster 3.16.1 gives it the instance's
# tags (pcluster/templates/cluster_stack.py), and the head node the right to tag it (cdk_builder_utils.py). A head node
# without snapshots is still one: a failure is only told, and the next update of the cluster tries again.
mark_root_volume() {
    local volume tag="Key=ultracluster:snapshots,Value=$deployment"
    if request_metadata instance-id &&
        volume=$(limited aws ec2 describe-volumes --region "$region" --filters \
            "Name=attachment.instance-id,Values=$metadata" Name=tag:parallelcluster:node-type,Values=HeadNode \
            --query 'Volumes[0].VolumeId' --output text) &&
        limited aws ec2 create-tags --region "$region" --resources "$volume" --tags "$tag"; then
        log "$volume is marked for snapshots"
    else
        log "no snapshots are taken of this node's root volume, which could not be marked. To do: aws ec2 create-tags --region $region --resources VOLUME --tags $tag"
    fi
}
