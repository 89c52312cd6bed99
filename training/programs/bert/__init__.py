"""BERT pre-training, data-parallel over the NeuronCores of many nodes: ``python -m bert train|check|export``."""
