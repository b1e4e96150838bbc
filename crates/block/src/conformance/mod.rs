//! The conformance kit: the contract of the waist as checks that any Device implementation runs.
