"""What runs inside a machine: the imitation of what an AMI of ParallelCluster brings, around its real daemons.

Standard library and PyYAML only: starting boto3 takes 0.4 s of a processor, and eight nodes start on two.
"""
