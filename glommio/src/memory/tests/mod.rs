//! What needs privates: the free blocks against a bitmap, and where buffers really lie.

mod buffers;
mod model;
