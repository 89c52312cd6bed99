"""Images with the Neuron software of a deployment, built by `pcluster build-image`."""
