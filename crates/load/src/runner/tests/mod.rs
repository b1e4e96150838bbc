//! Teams run in real time on threads and in virtual time without, and open loops against queueing theory.

mod real_time;
mod virtual_time;
