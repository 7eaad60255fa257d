//! A hash map whose order follows from what is done to it, so that a simulation is the same each time.

use std::collections;
use std::hash::{BuildHasherDefault, DefaultHasher};

pub(crate) type HashMap<K, V> = collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>;
