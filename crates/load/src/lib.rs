//! Workers that run a workload on a device.
