#!/bin/sh
# Sets the state of queues, as root, until Slurm refuses one:
#
#   set_queues.sh STATE QUEUE...
set -eu
export PATH="/opt/slurm/bin:$PATH" LC_ALL=C
state=$1
shift
for queue; do
    scontrol update "PartitionName=$queue" "State=$state"
done
