#!/bin/bash
# What the health checks can find: code, severity, action. Sourced; a test compares docs/reference/health-checks.md with it.
#
# Severity: the reason of a drained node names a critical finding, which lies in the hardware, before an error.
# Action: what has to happen to the node, as AWS's table of hardware errors has it
# (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html). Before a job, each
# finding drains the node and requeues the job. After a job, the driver is loaded again first where that may help.
# shellcheck disable=SC2034 # used by check.sh
declare -Ar FINDINGS=(
    [NODE_UNKNOWN]="error drain-requeue"
    [NEURON_DRIVER]="error reload-driver"
    [NEURON_DEVICES]="critical replace"
    [EFA_DEVICES]="critical replace"
    [SRAM_ECC]="critical replace"
    [HBM_ECC]="critical replace"
    [HBM_ECC_REPAIRABLE]="error reload-driver"
    [NEURON_HW_ERR]="critical replace"
    [KERNEL_LOG]="error drain-requeue"
    [SHARED_STORAGE]="error drain-requeue"
    [SCRATCH]="error drain-requeue"
    [STALE_PROCESS]="error drain-requeue"
)
