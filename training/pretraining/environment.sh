#!/bin/bash
# What the pre-training of BERT needs beside ../environment.sh, which is sourced after it. Sourced. The values are those of
# AWS's scripts (https://github.com/aws-neuron/aws-neuron-samples, dp_bert_hf_pretrain). What is set already stays.

# Megabytes of gradients that PyTorch/XLA reduces at a time: 50 unless set
# (https://github.com/pytorch/xla/blob/v2.9.0/torch_xla/_internal/neuron.py). The scripts, for several nodes, have it by the
# old name BUCKET_CAP_MB.
export ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB=${ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB:-512}

export NEURON_CC_FLAGS=${NEURON_CC_FLAGS:---model-type=transformer --retry_failed_compilation}
