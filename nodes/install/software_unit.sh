#!/bin/bash
# The unit that builds the software of training jobs, beside the cluster's creation and updates. Sourced by the head node.
# shellcheck disable=SC2154 # the entry script has these variables

readonly SOFTWARE_UNIT=/etc/systemd/system/ultracluster-software.service

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
