//! Any bytes tell a history of arms, cancels, re-arms, polls and sleeps. The ordered map, the wheel
//! and the staged wheel live it through in step, in their own geometry and in the smallest, and must
//! do what a sorted map does, with all invariants checked after every operation.

#![no_main]

use libfuzzer_sys::fuzz_target;
use staged_wheel::follow_bytes;

fuzz_target!(|bytes: &[u8]| follow_bytes(bytes));
