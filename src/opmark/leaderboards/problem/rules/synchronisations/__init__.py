"""Methods that keep the weights of replicas equal, one file each."""
