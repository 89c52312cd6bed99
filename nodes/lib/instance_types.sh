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

# look_up_instance_type TYPE: sets `devices`, `cores` and `efa_devices`; a type that is not in the table has none.
look_up_instance_type() {
    # shellcheck disable=SC2034 # used by the scripts that source this
    read -r devices cores efa_devices <<<"${INSTANCE_TYPES[$1]:-0 0 0}"
}
