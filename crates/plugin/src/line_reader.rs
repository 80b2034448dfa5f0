//! Reads lines of bounded length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadLine {
    /// A line, without its end; it is in the buffer.
    Line,
    /// It is longer than allowed.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads a line into `buffer`, at most `most_bytes` of it.
pub(crate) async fn read_line<R: AsyncBufRead + Unpin>(
    from: &mut R,
    buffer: &mut Vec<u8>,
    most_bytes: usize,
) -> std::io::Result<ReadLine> {
    buffer.clear();
    loop {
        let available = from.fill_buf().await?;
        if available.is_empty() {
            return Ok(if buffer.is_empty() { ReadLine::End } else { ReadLine::Line });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if buffer.len() + taken > most_bytes {
            return Ok(ReadLine::TooLong);
        }
        buffer.extend_from_slice(available.get(..taken).unwrap_or_default());
        let consumed = taken + usize::from(end.is_some());
        from.consume(consumed);
        if end.is_some() {
            return Ok(ReadLine::Line);
        }
    }
}

#[cfg(test)]
#[path = "line_reader_tests.rs"]
mod tests;
