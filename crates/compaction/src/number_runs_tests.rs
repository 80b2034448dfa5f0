//! Tests of which numbers are in runs and which are facts.

use rustc_hash::{FxHashMap, FxHashSet};
use throughline_testkit::{GeneratedList, Rng};
use throughline_transcript::{Groups, Role, WireFormat, compact_json_string, text_message, tool_result_stub};

use super::*;

/// The same by collecting all numbers of each source and sorting them.
fn by_sorting(ledger: &Ledger) -> FxHashSet<&str> {
    let mut by_source: FxHashMap<Option<u32>, Vec<(u64, &str, bool)>> = FxHashMap::default();
    for (text, info) in ledger.anchors() {
        if info.kind == AnchorKind::Number
            && let Some(number) = plain_number(text)
        {
            let is_human = info.seen_by.has(SeenBy::HUMAN);
            by_source.entry(info.home).or_default().push((number, text, is_human));
        }
    }
    let mut found = FxHashSet::default();
    for numbers in by_source.values_mut() {
        numbers.sort_unstable();
        for run in numbers.chunk_by(|a, b| a.0 + 1 == b.0) {
            let least = |is_human: bool| if is_human { 8 } else { 4 };
            found.extend(
                run.iter().filter(|(_, _, human)| run.len() >= least(*human)).map(|(_, text, _)| *text),
            );
        }
    }
    found
}

#[test]
fn numbers_are_in_the_same_runs_as_by_sorting_all_of_them() {
    let mut rng = Rng::new(3);
    let mut in_runs = 0;
    for _ in 0..200 {
        let mut numbers = || {
            let many = rng.between(0, 40);
            (0..many).map(|_| format!("{} ", rng.between(990, 1_030))).collect::<String>()
        };
        let mut json = vec![text_message(WireFormat::Chat, Role::User, &numbers())];
        for id in ["a", "b", "c"] {
            let arguments = compact_json_string(&format!(r#"{{"command":"count {id}"}}"#));
            json.push(format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"bash","arguments":{arguments}}}}}]}}"#
            ));
            json.push(tool_result_stub(WireFormat::Chat, id, &numbers()));
        }
        let messages = GeneratedList::of(WireFormat::Chat, json).messages();
        let ledger = Ledger::of(&messages, &Groups::of(&messages), None);
        let found = ledger.anchors().filter(|(text, info)| is_in_number_run(&ledger, text, info));
        let found: FxHashSet<&str> = found.map(|(text, _)| text).collect();
        assert_eq!(found, by_sorting(&ledger));
        in_runs += found.len();
    }
    assert!(in_runs > 100, "{in_runs}");
}
