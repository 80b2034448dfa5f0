//! Tests of a user's file over the shipped catalogue.

use super::{Catalogue, CatalogueError, OwnValue};
use crate::model::Family;
use crate::prices::{PriceBasis, PricedCall};
use crate::usage::Usage;

const FILE: &str = r#"{
  "version": 1,
  "models": [
    {"name": "claude", "cache_minimum": 777},
    {"name": "Claude-Opus.5", "window": 300000},
    {"name": "my-model", "window": 32768, "max_output": 4096, "family": "o200k",
     "rates": [{"input": 1, "output": 2, "cache_read": 0.1}, {"above": 1000, "input": 10, "output": 20}]}
  ]
}"#;

#[test]
fn what_the_file_says_counts_and_the_rest_is_as_shipped() {
    let catalogue = Catalogue::with_file(FILE).unwrap();
    let opus = catalogue.of("anthropic/claude-opus-5-20260101");
    assert_eq!(opus.own_entry.as_deref(), Some("claude-opus-5"), "the longest name that fits");
    assert_eq!(opus.own_values, [OwnValue::Window]);
    assert_eq!(opus.facts.window_tokens, 300_000);
    let shipped = Catalogue::shipped_facts("claude-opus-5");
    assert_eq!(opus.facts.max_output_tokens, shipped.max_output_tokens);
    assert_eq!(opus.facts.cache_minimum_tokens, shipped.cache_minimum_tokens);
    assert_eq!(catalogue.of("claude-sonnet-4-5").facts.cache_minimum_tokens, Some(777));
    let own = catalogue.of("my-model:latest");
    assert_eq!((own.facts.window_tokens, own.facts.max_output_tokens), (32_768, Some(4_096)));
    assert_eq!(own.facts.family, Family::O200k);
    assert_eq!(own.own_values, [OwnValue::Window, OwnValue::MaxOutput, OwnValue::Family, OwnValue::Prices]);
    let other = catalogue.of("gpt-5");
    assert_eq!((other.facts, other.own_entry), (Catalogue::shipped_facts("gpt-5"), None));
    assert_eq!(Catalogue::shipped().of("claude-opus-5").facts, shipped);
}

#[test]
fn own_prices_come_first() {
    let catalogue = Catalogue::with_file(FILE).unwrap();
    let usage = |input, cache_read| Usage { input, cache_read, output: 1_000_000, ..Usage::default() };
    let call = |model, usage| PricedCall { model, provider: "", at_ms: 0, usage, cache_write_1h: 0 };
    let small = catalogue.cost(&call("my-model", usage(500, 500)));
    assert_eq!(small.micro_usd, Some(2_000_550));
    assert_eq!(small.basis, PriceBasis::OwnFile);
    assert_eq!(catalogue.cost(&call("my-model", usage(2_000, 0))).micro_usd, Some(20_020_000));
    let unpriced = catalogue.cost(&call("my-model", usage(2_000, 1)));
    assert_eq!((unpriced.micro_usd, unpriced.basis), (None, PriceBasis::UnpricedBucket("cache_read")));
    let listed = call("claude-opus-4-7", usage(1, 1));
    assert_eq!(catalogue.cost(&listed), listed.list_cost(), "no prices in the file, so those of the list");
}

#[test]
fn a_bad_file_is_refused_with_its_place() {
    let error = |text: &str| Catalogue::with_file(text).unwrap_err().to_string();
    let typo = error("{\"version\": 1,\n \"models\": [{\"name\": \"x\", \"windw\": 5}]}");
    assert!(
        typo.starts_with("line 2, column ") && typo.contains("windw") && typo.contains("`window`"),
        "{typo}"
    );
    assert!(error("").starts_with("line 1, column 0: EOF"));
    assert!(error("[]").contains("line 1"));
    assert_eq!(
        error(r#"{"version":2,"models":[]}"#),
        "version 2 is newer than 1, the newest that can be read"
    );
    let entry = |entry: &str| error(&format!(r#"{{"version":1,"models":[{entry}]}}"#));
    assert_eq!(entry(r#"{"name":" "}"#), "``: name must be the name of a model or a part of it");
    assert_eq!(entry(r#"{"name":"x","window":0}"#), "`x`: window must be between 1 and 100000000");
    assert_eq!(
        entry(r#"{"name":"x","window":5,"max_output":6}"#),
        "`x`: max_output must be between 1 and the window"
    );
    assert_eq!(
        entry(r#"{"name":"x","cache_minimum":0}"#),
        "`x`: cache_minimum must be between 1 and 100000000"
    );
    assert!(entry(r#"{"name":"x","rates":[{"input":-1,"output":1}]}"#).contains("not negative"));
    assert!(entry(r#"{"name":"x","family":"y"}"#).contains("unknown variant"));
    assert_eq!(
        Catalogue::with_file(r#"{"version":1,"models":[{"name":"a.b"},{"name":"A-B"}]}"#).unwrap_err(),
        CatalogueError::Twice { name: "a-b".to_owned() }
    );
}
