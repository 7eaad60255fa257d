//! Segments that are read as one source.

use std::sync::Arc;

use crate::segment::Segment;
use crate::segments::Segments;

/// Segments in time order that are read as one source: a lane, a late run, a level.
#[derive(Debug)]
pub(crate) struct List<V> {
    pub body: Option<Arc<Segments<V>>>,
    pub tail: Option<Arc<Segment<V>>>,
}

impl<V> Clone for List<V> {
    fn clone(&self) -> Self {
        Self {
            body: self.body.clone(),
            tail: self.tail.clone(),
        }
    }
}

impl<V> List<V> {
    pub fn one(segment: Arc<Segment<V>>) -> Self {
        Self {
            body: None,
            tail: Some(segment),
        }
    }

    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment<V>>> {
        let body = self.body.iter().flat_map(|body| body.iter());
        body.chain(&self.tail)
    }

    /// Takes the segments out.
    pub fn into_segments(self) -> impl Iterator<Item = Arc<Segment<V>>> {
        let body = self.body.map(Arc::unwrap_or_clone);
        let body = body.into_iter().flat_map(Segments::into_segments);
        body.chain(self.tail)
    }
}
