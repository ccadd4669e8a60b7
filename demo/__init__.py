"""The main job on a real photograph: kernels written for a Mac's GPU run on this CPU, forward and backward."""
