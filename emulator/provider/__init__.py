"""A fake of AWS's provider of clusters: the nested stack whose Lambda function stands behind a cluster resource.

AWS's own is in aws/aws-parallelcluster, cloudformation/custom_resource/cluster.yaml, and in a bucket of each Region
(Apache License 2.0). Parameters, outputs, behaviour and the words of its refusals are the same; the code is not.
"""
