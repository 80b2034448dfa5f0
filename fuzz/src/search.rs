//! Queries: the first line is asked of the lines that follow.

use throughline_search::fingerprint::FingerprintSet;
use throughline_search::matching::Matcher;
use throughline_search::query::{IndexTerm, ParsedQuery, SearchMethod};
use throughline_search::question::Question;
use throughline_search::texts::TextPassage;
use throughline_search::{SearchMode, Snippet};

/// Passages of an answer.
const LIMIT: usize = 5;

/// Any query over any texts: a text that matches has the fingerprints by which an index proposes it; what is marked lies in the text;
/// passages lie in their texts and hold as many words as they say.
pub fn search(data: &[u8]) {
    let input = String::from_utf8_lossy(data);
    let (query, texts) = input.split_once('\n').unwrap_or((&input, &input));
    let parsed = ParsedQuery::new(query);
    for method in parsed.ways(SearchMode::Words) {
        let mut matcher = Matcher::new(&parsed, *method);
        for text in texts.lines().chain([texts]) {
            let fits = matcher.fit(text).is_some();
            let marks = matcher.places(text);
            for mark in &marks {
                assert!(text.get(mark.start..mark.end).is_some_and(|marked| !marked.is_empty()), "{mark:?}");
            }
            if fits {
                assert!(is_proposed(&parsed, *method, text), "{query:?} {method:?} in {text:?}");
                let shown = Snippet::passage(text, &marks);
                assert!(shown.marks.iter().all(|(start, end)| shown.text.get(*start..*end).is_some()));
            }
        }
    }
    let question = Question::new(query);
    let found = TextPassage::rank(query, texts.lines(), LIMIT);
    assert!(found.len() <= LIMIT);
    for hit in &found {
        assert!(texts.lines().nth(hit.text).is_some());
        assert!((1..=question.len()).contains(&hit.matched.words), "{:?}", hit.matched);
        assert_eq!(hit.matched.of, question.len());
        assert!(hit.score.is_finite());
        assert!(hit.snippet.marks.iter().all(|(start, end)| hit.snippet.text.get(*start..*end).is_some()));
    }
}

/// Whether an index that holds a text proposes it for a query.
fn is_proposed(query: &ParsedQuery, method: SearchMethod, text: &str) -> bool {
    let mut set = FingerprintSet::default();
    set.add_text(text);
    let of_text = set.take();
    let has = |fingerprint: &u32| of_text.binary_search(fingerprint).is_ok();
    match method {
        SearchMethod::Substring => FingerprintSet::rarest_triples(&query.substring).iter().all(has),
        SearchMethod::Words => query.look_ups().iter().any(|look_up| {
            look_up
                .iter()
                .flat_map(|terms| IndexTerm::fingerprints_of_any(terms))
                .all(|any| any.iter().any(has))
        }),
    }
}
