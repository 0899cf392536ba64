"""CUDA from Python: NVRTC, devices, modules. Nothing is imported or started before it is used."""
