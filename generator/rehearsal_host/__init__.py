"""What a rehearsal needs of this machine: environments, a closed network, processes in it."""
