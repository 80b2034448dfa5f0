//! Tests of the calls in Hermes' database: growing sums, charges, subscriptions.

use rusqlite::params;

use crate::ids::Owner;
use crate::import::ImportCounts;
use crate::import::hermes_testing::Hermes;
use crate::store::Store;

fn use_tokens(world: &Hermes, session: &str, task: &str, calls: u64, input: u64) {
    world
        .theirs
        .execute(
            "INSERT INTO session_model_usage (session_id, model, billing_provider, task, api_call_count, input_tokens, \
             output_tokens, last_seen) VALUES (?1, 'claude-opus-4-6', 'anthropic', ?2, ?3, ?4, 100, 1790000000)",
            params![session, task, calls, input],
        )
        .unwrap();
}

#[test]
fn sums_of_usage_are_booked_as_they_grow() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.say("h1", "user", "hi");
    // Three calls of 100,000 tokens each: no single prompt is long.
    use_tokens(&world, "h1", "", 3, 300_000);
    use_tokens(&world, "h1", "compression", 1, 1_000);
    assert_eq!(world.counts().calls, 2);
    assert_eq!(world.counts(), ImportCounts { unchanged: 1, ..ImportCounts::default() });
    world
        .theirs
        .execute_batch("UPDATE session_model_usage SET input_tokens = 400000, output_tokens = 150, api_call_count = 4 WHERE task = ''")
        .unwrap();
    let counts = world.counts();
    assert_eq!((counts.calls, counts.grown), (1, 1));
    let calls = world.ours.calls(&Owner::default(), &world.root("h1").id).unwrap();
    let told: Vec<(&str, u64, u64)> = calls
        .iter()
        .map(|call| (call.call.task.as_str(), call.call.usage.input, call.call.usage.output))
        .collect();
    assert_eq!(told, [("chat", 300_000, 100), ("compression", 1_000, 100), ("chat", 100_000, 50)]);
    assert_eq!(calls[0].call.cost_micro_usd, Some(1_500_000 + 25 * 99), "33 tokens of output a call");
}

#[test]
fn what_hermes_was_charged_outranks_the_list_and_subscriptions_cost_nothing() {
    let mut world = Hermes::new();
    world.session("h1", None, 1_000.0);
    world.say("h1", "user", "hi");
    use_tokens(&world, "h1", "", 1, 1_000);
    world.theirs.execute_batch("UPDATE session_model_usage SET actual_cost_usd = 0.25").unwrap();
    use_tokens(&world, "h1", "title", 1, 1_000);
    world
        .theirs
        .execute_batch(
            "UPDATE session_model_usage SET billing_mode = 'subscription_included' WHERE task = 'title'",
        )
        .unwrap();
    use_tokens(&world, "h1", "local", 1, 1_000);
    world.theirs.execute_batch("UPDATE session_model_usage SET model = 'mine', billing_provider = 'custom', billing_base_url = 'http://localhost:1' WHERE task = 'local'").unwrap();
    world.counts();
    let calls = world.ours.calls(&Owner::default(), &world.root("h1").id).unwrap();
    let costs: Vec<Option<u64>> = calls.iter().map(|call| call.call.cost_micro_usd).collect();
    assert_eq!(costs, [Some(250_000), Some(0), None]);
    assert_eq!(calls[2].call.provider, "http://localhost:1");
}
