//! What the soak and the benches share: they describe the machine, draw
//! random numbers, sum up what they have measured, lose datagrams, and write tables, numbers and plots.
//!
//! The crates below do the work: procfs, fastrand, hdrhistogram, tabled and plotters. What is here
//! makes the results alike wherever they are shown.
//!
//! This crate is a tool of the workspace. The library `glommio` never depends on it.

#![forbid(unsafe_code)]

pub mod generator;
pub mod lossy_proxy;
pub mod machine;
pub mod numbers;
pub mod output;
pub mod plots;
pub mod process;
pub mod quantiles;
pub mod tables;
