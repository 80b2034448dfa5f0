//! Any sequence of operations has the same effect on every record: made-up ones are carried out on the record in memory
//! and on the record on disk, and whatever can be asked is answered alike, errors and numbers included.

#[path = "twins_act.rs"]
mod act;
#[path = "twins_ask.rs"]
mod ask;
#[path = "twins_script.rs"]
mod script;

use proptest::prelude::*;
use throughline_store::{MemoryStore, SqliteStore, Store as _};

proptest! {
    #![proptest_config(ProptestConfig { cases: throughline_testkit::cases(40), max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_records_answer_alike(script in script::scripts()) {
        let home = tempfile::tempdir().unwrap();
        let on_disk = SqliteStore::open(&home.path().join("record.db"), 0).unwrap();
        let in_memory = MemoryStore::new();
        for (at, step) in script.iter().enumerate() {
            let expected = act::carry_out(&in_memory, &script, at);
            let got = act::carry_out(&on_disk, &script, at);
            prop_assert_eq!(got, expected, "step {}: {:?}", at, step);
        }
        for (in_memory, on_disk) in ask::everything(&in_memory, &|owner, query| in_memory.scan(owner, query), &script).zip(ask::everything(&on_disk, &|owner, query| on_disk.search(owner, query), &script)) {
            prop_assert_eq!(on_disk, in_memory);
        }
        drop(on_disk);
        let reopened = SqliteStore::open(&home.path().join("record.db"), 1).unwrap();
        for (in_memory, on_disk) in ask::everything(&in_memory, &|owner, query| in_memory.scan(owner, query), &script).zip(ask::everything(&reopened, &|owner, query| reopened.search(owner, query), &script)) {
            prop_assert_eq!(on_disk, in_memory, "after opening it again");
        }
    }
}

/// The made-up sequences must reach what they are for; a run that only ever fails would agree with anything.
#[test]
fn the_scripts_reach_every_operation_and_most_succeed() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut done: std::collections::BTreeMap<&str, (u32, u32)> = std::collections::BTreeMap::new();
    for _ in 0..400 {
        let script = script::scripts().new_tree(&mut runner).unwrap().current();
        let store = MemoryStore::new();
        for (at, step) in script.iter().enumerate() {
            let (succeeded, tried) = done.entry(step.name()).or_default();
            *tried += 1;
            *succeeded += u32::from(act::carry_out(&store, &script, at).starts_with("Ok"));
        }
    }
    for name in script::NAMES {
        let (succeeded, tried) = done.get(name).copied().unwrap_or_default();
        assert!(succeeded >= 20, "{name}: {succeeded} of {tried} succeeded");
    }
}
