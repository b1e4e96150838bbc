//! Byte format of a log, with pictures in `docs/ON_DISK_FORMAT.md`. Everything here is pure: conversion
//! between bytes and values.
//!
//! Every structure is one block of 4096 bytes, the last four of which are a CRC-32C of all bytes before,
//! including unused ones. All numbers are little-endian.

pub(crate) mod block;
pub(crate) mod record;
pub(crate) mod superblock;
