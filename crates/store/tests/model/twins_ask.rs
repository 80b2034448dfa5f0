//! Everything that can be asked of a record after a script.

use throughline_store::{
    ArtifactRange, CallFilter, GuardScope, Owner, SearchAnswer, SearchMode, SearchQuery, SessionFilter,
    SessionId, Store, UsageBy,
};
use throughline_transcript::Role;

use super::act::{WORDS, comparable, name, owner, told};
use super::script::Step;

/// How a store is searched.
pub(crate) type Search<'a> = dyn Fn(&Owner, &SearchQuery) -> throughline_store::Result<SearchAnswer> + 'a;

/// Answers one after the other, each with its question.
pub(crate) fn everything<'a>(
    store: &'a dyn Store,
    search: &'a Search<'a>,
    script: &'a [Step],
) -> impl Iterator<Item = String> + 'a {
    [owner(0), owner(1)].into_iter().flat_map(move |owner| {
        let of_sessions: Vec<String> =
            (0..script.len()).flat_map(|at| about(store, &owner, &name(at))).collect();
        of_sessions.into_iter().chain(lists(store, &owner)).chain(searches(search, &owner, script.len()))
    })
}

/// About one session.
fn about(store: &dyn Store, owner: &Owner, id: &SessionId) -> Vec<String> {
    let mut answers = vec![told(store.session(owner, id))];
    if answers[0].starts_with("Err") {
        return answers;
    }
    answers.extend([
        told(store.chain(owner, id)),
        told(store.family(owner, id)),
        told(store.messages(owner, id)),
        told(store.transcript(owner, id)),
        told(store.view_items(owner, id)),
        told(store.view(owner, id, None)),
        told(store.summaries(owner, id)),
        // Their numbers tell their order, and may leave some out.
        told(store.calls(owner, id).map(|calls| {
            assert!(calls.is_sorted_by_key(|call| call.id));
            calls.into_iter().map(|call| (call.session, call.call)).collect::<Vec<_>>()
        })),
        told(store.usage(
            owner,
            &CallFilter { chain_of: Some(id.clone()), ..CallFilter::default() },
            UsageBy::Task,
        )),
    ]);
    let places = store.session(owner, id).map_or(0, |session| session.next_seq);
    answers.extend((0..places).map(|to| told(store.view(owner, id, Some(to)))));
    let scope = GuardScope::Chain(owner.clone(), id.clone());
    answers.extend(["cooldown", "strikes"].map(|name| told(store.guard(&scope, name, 400))));
    for artifact in store.artifacts(owner, id).unwrap() {
        answers.push(told(store.artifact(owner, &artifact.id).map(comparable)));
        answers.push(told(store.read_artifact(
            owner,
            &artifact.id,
            ArtifactRange::Lines { first: 1, count: 2 },
        )));
        answers.push(told(store.read_artifact(
            owner,
            &artifact.id,
            ArtifactRange::Bytes { first: 1, count: 9 },
        )));
    }
    answers
}

/// Lists, totals, and what references lead to.
fn lists(store: &dyn Store, owner: &Owner) -> Vec<String> {
    let filters = [
        SessionFilter::default(),
        SessionFilter { include_attached: true, ..SessionFilter::default() },
        SessionFilter { since_ms: Some(990), limit: Some(3), ..SessionFilter::default() },
        SessionFilter { program: Some("codex".into()), ..SessionFilter::default() },
    ];
    let mut answers: Vec<String> =
        filters.iter().map(|filter| told(store.conversations(owner, filter))).collect();
    answers.extend(["last", "2026_0", "2026_00", "2026_001", "ROOF", "\u{5c4b}\u{9876}", "", "x"].map(
        |reference| {
            format!("{reference}: {}", told(store.resolve(owner, reference).map(|session| session.id)))
        },
    ));
    answers.push(told(store.sessions_by_origin(owner, "codex", "key-")));
    answers.extend((0..3).map(|key| told(store.session_by_origin(owner, "codex", &format!("key-{key}")))));
    let ways = [
        UsageBy::Everything,
        UsageBy::Model,
        UsageBy::Project,
        UsageBy::Program,
        UsageBy::CacheMiss,
        UsageBy::AccessToken,
        UsageBy::Day { offset_minutes: 90 },
    ];
    answers.extend(ways.map(|by| told(store.usage(owner, &CallFilter::default(), by))));
    let bounded = CallFilter { since_ms: Some(0), until_ms: Some(90_000_000), ..CallFilter::default() };
    answers.push(told(store.usage(owner, &bounded, UsageBy::Task)));
    answers.extend([None, Some(2_000)].map(|since_ms| told(store.tool_counts(owner, since_ms))));
    answers.push(told(store.locks()));
    answers.extend((1..4).map(|number| told(store.summary(owner, throughline_store::SummaryId(number)))));
    answers
}

fn searches(search: &Search<'_>, owner: &Owner, steps: usize) -> Vec<String> {
    let phrases =
        ["quick brown", "\"brown fox\"", "conf*", "user", "needle", "kept text", "\u{4eac}", "e", "zzz"];
    let mut answers = Vec::new();
    for text in WORDS.iter().chain(&phrases) {
        for mode in [SearchMode::AllWords, SearchMode::Substring] {
            let query = SearchQuery {
                text: (*text).to_owned(),
                mode,
                neighbours: 1,
                limit: 50,
                ..SearchQuery::default()
            };
            answers.push(format!("{text} ({mode:?}): {}", told(search(owner, &query))));
        }
    }
    let all = SearchQuery { text: "quick".into(), mode: SearchMode::AllWords, ..SearchQuery::default() };
    let narrowed = [
        SearchQuery { role: Some(Role::Assistant), ..all.clone() },
        SearchQuery { tool: Some("EDIT".into()), ..all.clone() },
        SearchQuery { since_ms: Some(2_500), ..all.clone() },
        SearchQuery { until_ms: Some(2_500), mode: SearchMode::Substring, ..all.clone() },
        SearchQuery { limit: 1, ..all.clone() },
    ];
    answers.extend(narrowed.iter().map(|query| format!("{query:?}: {}", told(search(owner, query)))));
    for at in 0..steps {
        let within = SearchQuery { session: Some(name(at)), ..all.clone() };
        answers.push(format!("within {at}: {}", told(search(owner, &within))));
    }
    answers
}
