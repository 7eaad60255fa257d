//! The form for data frames: a stream of Arrow IPC.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, RecordBatch,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};

use crate::{Column, Layout, Record, Scalar, TimeUnit, Ts};

/// Bounds the memory.
const BATCH_ROWS: usize = 1 << 16;

/// Writes rows as a stream of Arrow IPC, and gives their number: a column `timestamp`, and those of
/// `layout`, which is that of the type of the values. Integers of 128 bits and bytes of no known
/// meaning are binary values of one size.
///
/// Needs the feature `arrow`.
///
/// # Errors
/// Those of `out`.
///
/// # Examples
///
/// ```
/// use timelog::dump::dump_arrow;
/// use timelog::{Layout, Record, TimeUnit};
///
/// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
/// log.extend([(1, (10u32, 1.5)), (2, (20, 2.5))])?;
/// let layout = Layout::new(&<(u32, f64)>::type_name(), <(u32, f64)>::BYTES);
/// let mut file = Vec::new();
/// let snapshot = log.snapshot();
/// let rows = dump_arrow(snapshot.range(..), &layout, TimeUnit::Nanos, &mut file)?;
/// assert_eq!(rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn dump_arrow<'v, V: Record>(
    mut rows: impl Iterator<Item = (Ts, &'v V)>,
    layout: &Layout,
    unit: TimeUnit,
    out: impl Write,
) -> io::Result<u64> {
    let columns = layout.columns();
    let width = columns.last().map_or(0, Column::end);
    let schema = |arrays: &[ArrayRef]| {
        let mut names = vec!["timestamp".to_owned()];
        names.extend(layout.names());
        let fields = names.into_iter().zip(arrays);
        let fields = fields.map(|(name, array)| Field::new(name, array.data_type().clone(), false));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    };
    let arrays = |timestamps: Vec<Ts>, values: &[u8]| {
        let mut arrays = vec![timestamp_array(timestamps, unit)];
        arrays.extend(columns.iter().map(|it| array(it, values, width)));
        arrays
    };
    let schema = schema(&arrays(Vec::new(), &[]));
    let mut out = StreamWriter::try_new(out, &schema).map_err(failed)?;
    let mut written = 0;
    loop {
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        for (ts, value) in rows.by_ref().take(BATCH_ROWS) {
            timestamps.push(ts);
            let start = values.len();
            values.resize(start + width, 0);
            value.encode(&mut values[start..]);
        }
        if timestamps.is_empty() {
            out.finish().map_err(failed)?;
            return Ok(written);
        }
        written += timestamps.len() as u64;
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays(timestamps, &values));
        let batch = batch.map_err(failed)?;
        out.write(&batch).map_err(failed)?;
    }
}

fn failed(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}

fn timestamp_array(timestamps: Vec<Ts>, unit: TimeUnit) -> ArrayRef {
    match unit {
        TimeUnit::Seconds => Arc::new(PrimitiveArray::<TimestampSecondType>::from(timestamps)),
        TimeUnit::Millis => Arc::new(PrimitiveArray::<TimestampMillisecondType>::from(timestamps)),
        TimeUnit::Micros => Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from(timestamps)),
        TimeUnit::Nanos => Arc::new(PrimitiveArray::<TimestampNanosecondType>::from(timestamps)),
    }
}

/// A column of values that lie one after the other.
fn array(column: &Column, values: &[u8], width: usize) -> ArrayRef {
    let cells = values
        .chunks_exact(width.max(1))
        .map(|value| column.of(value));
    macro_rules! numbers {
        ($($scalar:ident $number:ty, $array:ty;)*) => {
            match column.scalar() {
                $(Scalar::$scalar => {
                    let numbers = cells.map(<$number>::decode);
                    Arc::new(PrimitiveArray::<$array>::from_iter_values(numbers))
                })*
                Scalar::Bool => {
                    let values: Vec<_> = cells.map(bool::decode).collect();
                    Arc::new(BooleanArray::from(values))
                }
                Scalar::U128 | Scalar::I128 | Scalar::Bytes => {
                    let bytes = column.bytes() as i32;
                    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(cells.map(Some), bytes);
                    Arc::new(array.expect("all are as long"))
                }
            }
        };
    }
    numbers! {
        U8 u8, UInt8Type;
        U16 u16, UInt16Type;
        U32 u32, UInt32Type;
        U64 u64, UInt64Type;
        I8 i8, Int8Type;
        I16 i16, Int16Type;
        I32 i32, Int32Type;
        I64 i64, Int64Type;
        F32 f32, Float32Type;
        F64 f64, Float64Type;
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, TimestampMillisecondType};
    use arrow_ipc::reader::StreamReader;

    use super::dump_arrow;
    use crate::{Config, Layout, MemLog, Record, TimeUnit};

    #[test]
    fn other_programs_read_what_was_dumped() {
        type Value = (i64, [bool; 2]);
        let value = |ts: i64| (-ts, [ts % 2 == 0, true]);
        let mut log = MemLog::new(Config::default()).unwrap();
        log.extend((0..70_000).map(|ts| (ts, value(ts)))).unwrap();
        let snapshot = log.snapshot();
        for (name, columns) in [(&Value::type_name()[..], 4), ("a type of its own", 2)] {
            let layout = Layout::new(name, Value::BYTES);
            let mut file = Vec::new();
            let dumped = dump_arrow(snapshot.range(..), &layout, TimeUnit::Millis, &mut file);
            assert_eq!(dumped.unwrap(), 70_000);
            let mut rows = 0..;
            for batch in StreamReader::try_new(&file[..], None).unwrap() {
                let batch = batch.unwrap();
                assert_eq!(batch.num_columns(), columns);
                let timestamps = batch.column(0).as_primitive::<TimestampMillisecondType>();
                for (index, ts) in timestamps.values().iter().enumerate() {
                    assert_eq!(Some(*ts), rows.next());
                    if columns == 2 {
                        let mut bytes = [0; Value::BYTES];
                        value(*ts).encode(&mut bytes);
                        assert_eq!(batch.column(1).as_fixed_size_binary().value(index), bytes);
                    } else {
                        let number = batch.column(1).as_primitive::<Int64Type>().value(index);
                        let is_even = batch.column(2).as_boolean().value(index);
                        assert_eq!((number, is_even), (-ts, ts % 2 == 0));
                    }
                }
            }
            assert_eq!(rows.next(), Some(70_000));
        }
        let mut log = MemLog::new(Config::default()).unwrap();
        log.append(1, ()).unwrap();
        let (mut file, layout) = (Vec::new(), Layout::new("()", 0));
        let dumped = dump_arrow(
            log.snapshot().range(..),
            &layout,
            TimeUnit::Nanos,
            &mut file,
        );
        assert_eq!(dumped.unwrap(), 1);
        assert_eq!(StreamReader::try_new(&file[..], None).unwrap().count(), 1);
    }
}
