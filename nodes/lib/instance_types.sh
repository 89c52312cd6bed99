#!/bin/bash
# What an instance has, by type: Neuron devices, NeuronCores as neuron-ls counts them, EFA devices. Sourced.
#
# A test compares this with the tables in Python. Trn2: neuron-ls counts two cores as one
# (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-ls.html).
declare -Ar INSTANCE_TYPES=(
    [trn1.2xlarge]="1 2 0"
    [trn1.32xlarge]="16 32 8"
    [trn1n.32xlarge]="16 32 16"
    [trn2.3xlarge]="1 4 1"
    [trn2.48xlarge]="16 64 16"
    [trn2u.48xlarge]="16 64 16"
)

# look_up_instance_type TYPE [STATED]: sets `devices`, `cores` and `efa_devices`, and `disks` to 1 where it has local disks
# for sure. STATED is what the settings say of other types, TYPE:DEVICES:CORES:EFA, separated by commas; a type that is
# in neither has nothing.
look_up_instance_type() {
    local stated=",${2:-},"
    # shellcheck disable=SC2034 # used by the scripts that source this
    devices=0 cores=0 efa_devices=0 disks=0
    if [[ -v INSTANCE_TYPES[$1] ]]; then
        read -r devices cores efa_devices <<<"${INSTANCE_TYPES[$1]}"
        # shellcheck disable=SC2034 # likewise
        disks=1
    elif [[ $stated == *",$1:"* ]]; then
        stated=${stated#*",$1:"}
        # shellcheck disable=SC2034 # likewise
        IFS=: read -r devices cores efa_devices <<<"${stated%%,*}"
    fi
}
