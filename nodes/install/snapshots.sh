#!/bin/bash
# Marks the head node's root volume for the lifecycle policy that takes snapshots of it. Sourced by head_node.sh.
# shellcheck disable=SC2154 # shared with the script that sources this

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
