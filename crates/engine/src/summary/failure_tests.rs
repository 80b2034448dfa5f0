//! Tests of the consequences of each failure.

use throughline_provider::{ConnectStage, RequestComplaint, WrongWireSign};

use super::*;

fn trouble(kind: ProviderErrorKind) -> RouteFailure {
    RouteFailure::Trouble(Box::new(ProviderError::of(kind)))
}

fn limited(secs: u64) -> RouteFailure {
    let retry_after = Some(Duration::from_secs(secs));
    RouteFailure::Trouble(Box::new(ProviderError {
        retry_after,
        ..ProviderError::of(ProviderErrorKind::RateLimit)
    }))
}

#[test]
fn kinds_of_failure_and_what_follows() {
    let slow = RouteFailure::TookTooLong { waited: Duration::from_secs(120) };
    let too_long = ProviderErrorKind::PromptTooLong { window_tokens: None, prompt_tokens: None };
    let complaint = RequestComplaint::Other;
    // Temporary; seconds before a second attempt; seconds for which the route is skipped, the first time and the fourth.
    let cases = [
        (trouble(ProviderErrorKind::Auth), false, None, Some((600, 600))),
        (trouble(ProviderErrorKind::Forbidden), false, None, Some((600, 600))),
        (trouble(ProviderErrorKind::UnknownModel), false, None, Some((600, 600))),
        (trouble(ProviderErrorKind::WrongWire { sign: WrongWireSign::Html }), false, None, Some((600, 600))),
        (trouble(ProviderErrorKind::MalformedRequest { complaint }), false, None, Some((600, 600))),
        (trouble(ProviderErrorKind::Quota { affordable_tokens: None }), false, None, Some((1_800, 1_800))),
        (trouble(ProviderErrorKind::RateLimit), true, Some(1), Some((60, 60))),
        (limited(5), true, Some(5), Some((5, 5))),
        (limited(90), true, None, Some((90, 90))),
        (limited(100_000), true, None, Some((3_600, 3_600))),
        (trouble(ProviderErrorKind::Overload), true, Some(1), Some((30, 300))),
        (trouble(ProviderErrorKind::ServerFault), true, Some(1), Some((30, 300))),
        (trouble(ProviderErrorKind::Interrupted), true, Some(1), Some((30, 300))),
        (
            trouble(ProviderErrorKind::Unreachable { stage: ConnectStage::Connect }),
            true,
            Some(1),
            Some((30, 300)),
        ),
        (trouble(ProviderErrorKind::Timeout), true, None, Some((60, 900))),
        (slow, true, None, Some((60, 900))),
        (trouble(too_long), false, None, Some((60, 900))),
        (trouble(ProviderErrorKind::ContentPolicy), false, None, Some((60, 900))),
        (RouteFailure::Defect(SummaryDefect::Empty), false, Some(0), Some((60, 900))),
        (
            RouteFailure::Defect(SummaryDefect::Declined { words: String::new() }),
            false,
            None,
            Some((60, 900)),
        ),
        (RouteFailure::WindowTooSmall { window_tokens: 1, needed_tokens: 2 }, false, None, None),
        (RouteFailure::NotWritable(String::new()), false, None, None),
    ];
    for (failure, passes, again_secs, rest_secs) in cases {
        assert_eq!(failure.passes(), passes, "{failure}");
        assert_eq!(failure.second_try().map(|wait| wait.as_secs()), again_secs, "{failure}");
        let rest =
            failure.rest_ms(0).zip(failure.rest_ms(3)).map(|(first, later)| (first / 1_000, later / 1_000));
        assert_eq!(rest, rest_secs, "{failure}");
    }
}

#[test]
fn all_failures_together_pass_if_one_does() {
    let of = |failure: RouteFailure| FailedRoute { route: "a at b".to_owned(), failure };
    let unfit = || of(RouteFailure::Defect(SummaryDefect::Blank));
    let auth = || of(trouble(ProviderErrorKind::Auth));
    let overload = || of(trouble(ProviderErrorKind::Overload));
    let small = || of(RouteFailure::WindowTooSmall { window_tokens: 10, needed_tokens: 20 });
    let resting = |failed: FailedRoute| {
        of(RouteFailure::Resting { failure: Box::new(failed.failure), until_ms: 5_000, for_ms: 4_100 })
    };
    let kind = |failures: &[FailedRoute]| match all_failed(failures) {
        SummariseError::Transient(_) => "transient",
        SummariseError::Permanent(_) => "permanent",
        SummariseError::Unusable(_) => "unusable",
        SummariseError::WindowTooSmall { .. } => "too small",
    };
    assert_eq!(kind(&[]), "permanent");
    assert_eq!(kind(&[auth(), overload()]), "transient");
    assert_eq!(kind(&[resting(overload()), auth()]), "transient");
    assert_eq!(kind(&[auth(), unfit()]), "permanent");
    assert_eq!(kind(&[unfit(), resting(unfit())]), "unusable");
    assert_eq!(kind(&[small()]), "too small");
    assert_eq!(kind(&[small(), auth()]), "permanent");
    let words = all_failed(&[auth(), resting(unfit())]).to_string();
    assert_eq!(
        words,
        "the summariser failed: a at b: the key was not accepted; \
         a at b: not asked for another 5 s, because the answer was blank"
    );
}
