#!/bin/bash
# The node has what its type should have. Sourced.
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

# verify_neuron: compares driver, devices and cores with what was asked for and what the type has.
verify_neuron() {
    local loaded counts
    loaded=$(loaded_driver)
    [[ $loaded == "$driver" ]] ||
        fail "$BAD_DRIVER" "the driver that is loaded is ${loaded:-none}, not $driver" "see dmesg and dkms status"
    counts=$(limited /opt/aws/neuron/bin/neuron-ls --json-output | count_devices) ||
        fail "$BAD_DEVICES" "neuron-ls does not tell which devices there are" "see the lines above, and dmesg"
    [[ $counts == "$devices $cores" ]] ||
        fail "$BAD_DEVICES" "${counts/ / devices with } NeuronCores, but $instance_type has $devices with $cores" \
            "see dmesg | grep -i neuron; $(how_to_replace)"
    log "driver $driver, $devices devices, $cores NeuronCores"
}

# count_devices: prints the numbers of devices and cores of what `neuron-ls --json-output` prints.
count_devices() {
    python3 -c 'import json, sys; d = json.load(sys.stdin); print(len(d), sum(device["nc_count"] for device in d))'
}

# verify_efa: compares the EFA devices that the driver serves with those that the type has.
verify_efa() {
    local expected working fitted to_do
    expected=$(expected_efa "$(uname -n)")
    working=$(count_amazon /sys/class/infiniband/*/device)
    if ((working < expected)); then
        fitted=$(count_amazon /sys/bus/pci/devices/*)
        to_do="see dmesg | grep efa and modinfo efa; do not install another EFA than the image has"
        ((fitted == expected)) || to_do="see the network interfaces of the launch template; $(how_to_replace)"
        fail "$BAD_EFA" "$working of $expected EFA devices work, and $fitted are on the PCI bus" "$to_do"
    fi
    log "$working EFA devices"
}

# expected_efa NODE: prints how many EFA devices a node of this name has: none in the compute resources without_efa.
expected_efa() {
    if [[ $1 =~ ^$queue-(st|dy)-(.+)-[0-9]+(\.|$) && ",$without_efa," == *",${BASH_REMATCH[2]},"* ]]; then
        echo 0
    else
        echo "$efa_devices"
    fi
}

# count_amazon DIRECTORY...: prints how many of these devices are EFA devices of Amazon (PCI 1d0f:efa0 and following).
count_amazon() {
    local directory count=0
    for directory in "$@"; do
        if [[ $(cat "$directory/vendor" "$directory/device" 2>/dev/null) == 0x1d0f$'\n'0xefa? ]]; then
            count=$((count + 1))
        fi
    done
    echo "$count"
}

how_to_replace() {
    echo "replace the node: scontrol update nodename=$(uname -n) state=power_down_force reason=hardware"
}
