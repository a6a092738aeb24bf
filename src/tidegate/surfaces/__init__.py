"""What tools are made of, the surface `core`, and the registry of all surfaces."""
