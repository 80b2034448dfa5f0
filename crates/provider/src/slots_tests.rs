//! Tests of the order of requests to a server with few slots.

use super::*;
use crate::endpoint::EndpointSettings;

const LONG: Duration = Duration::from_secs(3_600);

fn endpoint_at(provider: &str, base_url: &str) -> Endpoint {
    let settings = EndpointSettings {
        prefix: "model",
        provider,
        base_url,
        wire: None,
        api_key: "",
        api_key_env: "",
        headers: &[],
        model: "",
    };
    Endpoint::resolve(&settings, |_| None).unwrap()
}

fn one_slot() -> Endpoint {
    endpoint_at("llama.cpp", "http://127.0.0.1:8080/v1")
}

async fn acquire(slots: &Slots, endpoint: &Endpoint, priority: Priority) -> Result<ServerSlot, NoSlot> {
    slots.acquire(endpoint, priority, LONG, &CancellationToken::new()).await
}

/// Whether a task is done after all others had their turn.
async fn is_done<T>(task: &tokio::task::JoinHandle<T>) -> bool {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    task.is_finished()
}

fn begin(
    slots: &Slots,
    endpoint: &Endpoint,
    priority: Priority,
) -> tokio::task::JoinHandle<Result<ServerSlot, NoSlot>> {
    let (slots, endpoint) = (slots.clone(), endpoint.clone());
    tokio::spawn(async move { acquire(&slots, &endpoint, priority).await })
}

#[test]
fn servers_are_assumed_to_have_the_slots_that_people_give_them() {
    let one = ServerSlots::Known(NonZeroU32::MIN);
    for (provider, base_url, slots) in [
        ("ollama", "", one),
        ("llama.cpp", "", one),
        ("lmstudio", "", one),
        ("custom", "http://127.0.0.1:9000/v1", ServerSlots::Unknown),
        ("custom", "https://models.example.com/v1", ServerSlots::Unlimited),
    ] {
        let endpoint = endpoint_at(provider, base_url);
        assert_eq!(Slots::default().of(&endpoint), slots, "{provider} {base_url}");
    }
}

#[test]
fn settings_count_before_what_a_server_says_and_that_before_what_is_assumed() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    let four = NonZeroU32::new(4).unwrap();
    let eight = NonZeroU32::new(8).unwrap();
    slots.learn(&endpoint, four);
    assert_eq!(slots.of(&endpoint), ServerSlots::Known(four));
    slots.configure(&endpoint, Some(eight));
    assert_eq!(slots.of(&endpoint), ServerSlots::Known(eight));
    slots.configure(&endpoint, None);
    assert_eq!(slots.of(&endpoint), ServerSlots::Known(four));
    // Another path of the same server, and another name for the same machine.
    let same = endpoint_at("llama.cpp", "http://localhost:8080");
    assert_eq!(slots.of(&same), ServerSlots::Known(four));
}

#[tokio::test(start_paused = true)]
async fn foreground_requests_go_in_their_order_one_at_a_time() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    let first = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    let second = begin(&slots, &endpoint, Priority::Foreground);
    assert!(!is_done(&second).await);
    let third = begin(&slots, &endpoint, Priority::Foreground);
    assert!(!is_done(&third).await);
    drop(first);
    assert!(is_done(&second).await);
    assert!(!is_done(&third).await);
    drop(second.await.unwrap().unwrap());
    assert!(is_done(&third).await);
}

#[tokio::test(start_paused = true)]
async fn a_foreground_request_that_is_given_up_leaves_the_queue() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    let first = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    let given_up = begin(&slots, &endpoint, Priority::Foreground);
    assert!(!is_done(&given_up).await);
    let next = begin(&slots, &endpoint, Priority::Foreground);
    assert!(!is_done(&next).await);
    given_up.abort();
    drop(first);
    assert!(is_done(&next).await);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let cancelled = slots.acquire(&endpoint, Priority::Foreground, LONG, &cancel).await;
    assert!(cancelled.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_foreground_request_cancels_a_background_request_and_waits_until_it_is_gone() {
    for endpoint in [one_slot(), endpoint_at("custom", "http://127.0.0.1:9000/v1")] {
        let slots = Slots::default();
        let background = acquire(&slots, &endpoint, Priority::Background).await.unwrap();
        assert!(!background.cancel.is_cancelled());
        let person = begin(&slots, &endpoint, Priority::Foreground);
        assert!(!is_done(&person).await, "the connection is still open");
        assert!(background.cancel.is_cancelled());
        drop(background);
        assert!(is_done(&person).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_background_request_that_hangs_delays_nobody_for_long() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    let _hangs = acquire(&slots, &endpoint, Priority::Background).await.unwrap();
    let began = Instant::now();
    let _person = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    assert_eq!(began.elapsed(), LONGEST_CANCELLATION);
}

#[tokio::test(start_paused = true)]
async fn a_background_request_waits_for_foreground_requests_and_for_a_quiet_moment() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    let person = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    let background = begin(&slots, &endpoint, Priority::Background);
    assert!(!is_done(&background).await);
    drop(person);
    let ended = Instant::now();
    let _slot = background.await.unwrap().unwrap();
    assert_eq!(ended.elapsed(), QUIET, "an agent's next request has a moment to come first");
}

#[tokio::test(start_paused = true)]
async fn a_background_request_without_a_chance_is_put_off() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    let _person = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    let began = Instant::now();
    assert!(acquire(&slots, &endpoint, Priority::Background).await.is_err());
    assert_eq!(began.elapsed(), LONGEST_BACKGROUND_WAIT);
}

#[tokio::test(start_paused = true)]
async fn a_background_request_is_not_cancelled_while_there_is_another_slot() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    slots.configure(&endpoint, NonZeroU32::new(2));
    let background = acquire(&slots, &endpoint, Priority::Background).await.unwrap();
    let _person = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    assert!(!background.cancel.is_cancelled());
    let another = begin(&slots, &endpoint, Priority::Foreground);
    assert!(!is_done(&another).await);
    assert!(background.cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_foreground_request_is_sent_in_the_end_whatever_holds_the_slot() {
    let (slots, endpoint) = (Slots::default(), one_slot());
    let _first = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    let limit = Duration::from_secs(30);
    let began = Instant::now();
    let second = slots.acquire(&endpoint, Priority::Foreground, limit, &CancellationToken::new()).await;
    assert!(second.is_ok());
    assert_eq!(began.elapsed(), limit);
}

#[tokio::test(start_paused = true)]
async fn servers_without_a_limit_are_sent_everything_at_once() {
    let (slots, endpoint) = (Slots::default(), endpoint_at("custom", "https://models.example.com/v1"));
    let background = acquire(&slots, &endpoint, Priority::Background).await.unwrap();
    let _one = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    let _two = acquire(&slots, &endpoint, Priority::Foreground).await.unwrap();
    assert!(!background.cancel.is_cancelled());
}
