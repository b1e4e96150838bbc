//! Everything that talks to the kernel.
