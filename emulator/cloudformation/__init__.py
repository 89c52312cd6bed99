"""CloudFormation on one machine: templates, stacks and their life, over the models of `emulator.resources`."""
