#!/bin/bash
# Probes of a node. Each prints lines "CODE what" of what it finds. Sourced.
# shellcheck disable=SC2154 # check.sh has these variables

# probe_neuron_driver: the driver, its devices and their counters of uncorrectable errors, which start at 0 when it is
# loaded (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-sysfs-user-guide.html).
probe_neuron_driver() {
    local directory count=0
    ((devices)) || return 0
    if [[ ! -d $ROOT/sys/module/neuron ]]; then
        echo "NEURON_DRIVER the driver is not loaded"
        return
    fi
    for directory in "$ROOT"/sys/devices/virtual/neuron_device/neuron[0-9]*/; do
        [[ -d $directory ]] || continue
        count=$((count + 1))
        check_counter "$directory" sram_ecc_uncorrected SRAM_ECC
        check_counter "$directory" mem_ecc_uncorrected HBM_ECC
        check_counter "$directory" mem_ecc_repairable_uncorrected HBM_ECC_REPAIRABLE
    done
    ((count == devices)) || echo "NEURON_DEVICES $count of $devices Neuron devices of $instance_type are there"
}

# check_counter DEVICE NAME CODE: a driver that does not have the counter has nothing to tell.
check_counter() {
    local value
    read -r value <"$1/stats/hardware/$2" || return
    [[ $value == 0 ]] || echo "$3 $(basename "$1") has $2 $value"
}

# probe_efa_devices: the EFA devices that the driver serves.
probe_efa_devices() {
    local expected count
    expected=$(expected_efa "$node")
    count=$(count_amazon "$ROOT"/sys/class/infiniband/*/device)
    ((count >= expected)) || echo "EFA_DEVICES $count of $expected EFA devices of $instance_type work"
}

# probe_kernel_log: the first hardware error since the node started. A hang of collectives is none of them: another
# node may be the cause (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html).
probe_kernel_log() {
    ((devices)) || return 0
    { journalctl --dmesg --boot --quiet --no-pager --output=cat || dmesg; } | awk '
        !found && !/NEURON_HW_ERR=HANG_ON_COLLECTIVES/ && sub(/.*NEURON_HW_ERR=/, "NEURON_HW_ERR ") { print; found = 1 }'
}

# probe_shared_storage: the file system that all nodes share.
probe_shared_storage() {
    check_directory SHARED_STORAGE "$mount_dir"
}

# probe_scratch: the local disks, which all types with Neuron devices that we know have.
probe_scratch() {
    ((disks == 0)) || check_directory SCRATCH "$scratch_dir"
}

# check_directory CODE DIRECTORY: a file system is mounted there, perhaps at this first access, and takes a file.
check_directory() {
    local error
    if [[ ! -d $2/. ]] || ! mountpoint --quiet "$2"; then
        echo "$1 nothing is mounted on $2"
    elif ! error=$(write_and_remove "$2" 2>&1); then
        echo "$1 $2 cannot be written: ${error##*: }"
    fi
}

# write_and_remove DIRECTORY: under a name that nobody knows before: all users may write there, so they could take it.
write_and_remove() {
    local file
    file=$(mktemp "$1/.health-$node-XXXXXXXXXX") && echo "$node" >"$file" && sync "$file" && rm "$file"
}

# probe_stale_process: processes that hold Neuron devices although no job on the node has them. Users name them, with
# line ends if they like.
probe_stale_process() {
    local process name
    process=$(holders | head --lines=1)
    [[ -n $process ]] || return 0
    name=$(<"$ROOT/proc/$process/comm")
    echo "STALE_PROCESS process $process (${name//[^[:alnum:]._-]/?}) holds Neuron devices"
}
