//! Tests of short and long lines.

use super::*;

#[tokio::test]
async fn lines_come_one_by_one_and_never_longer_than_allowed() {
    let mut from: &[u8] = b"one\n\ntwo\nwhat follows is too long for anyone\nrest";
    let mut buffer = Vec::new();
    for expected in [&b"one"[..], b"", b"two"] {
        assert_eq!(read_line(&mut from, &mut buffer, 10).await.unwrap(), ReadLine::Line);
        assert_eq!(buffer, expected);
    }
    assert_eq!(read_line(&mut from, &mut buffer, 10).await.unwrap(), ReadLine::TooLong);
    let mut last: &[u8] = b"rest";
    assert_eq!(read_line(&mut last, &mut buffer, 10).await.unwrap(), ReadLine::Line);
    assert_eq!(buffer, b"rest");
    assert_eq!(read_line(&mut last, &mut buffer, 10).await.unwrap(), ReadLine::End);
}
