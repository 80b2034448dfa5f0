//! Tests that a body has the same bytes whether few or all messages were examined for marks.

use proptest::prelude::*;
use throughline_provider::{CacheMarks, CachePolicy, CacheSeller, CacheTtl};
use throughline_testkit::any_conversation;
use throughline_transcript::{Message, RawJson, WireFormat};
use throughline_wire::{Request, RequestParts, System};

use super::{CallOverrides, EncodedRequest, Marking, RequestEncoding};
use crate::prompt::envelope::{Envelope, SystemNote};
use crate::prompt::wire_form::WireForms;

fn policy(wire_format: WireFormat) -> CachePolicy {
    let seller = if wire_format == WireFormat::Chat { CacheSeller::OpenRouter } else { CacheSeller::OpenAi };
    CachePolicy::of(seller, wire_format, "claude-x", CacheTtl::OneHour)
}

/// Messages in the form in which they are sent.
struct Prompt {
    messages: Vec<Message>,
    forms: WireForms,
}

fn prompt(wire_format: WireFormat, messages: Vec<Message>) -> Prompt {
    let forms = WireForms::of_messages(policy(wire_format), &messages);
    Prompt { messages, forms }
}

fn envelope(wire_format: WireFormat) -> Envelope {
    let parts = RequestParts { system: Some(System::Text("Be brief.")), ..RequestParts::new("claude-x") };
    Envelope::build(wire_format, &parts).unwrap()
}

fn encode(envelope: &Envelope, prompt: &Prompt, sent_items: usize, own: &CallOverrides) -> EncodedRequest {
    encode_as(Marking::Ours, envelope, prompt, sent_items, own)
}

fn encode_as(
    marking: Marking,
    envelope: &Envelope,
    prompt: &Prompt,
    sent_items: usize,
    own: &CallOverrides,
) -> EncodedRequest {
    let encoding = RequestEncoding {
        envelope,
        messages: &prompt.messages,
        forms: &prompt.forms,
        note: SystemNote::None,
        cache: policy(envelope.wire_format()),
        marking,
        conversation: "root",
        sent_items,
        for_this_call: own,
    };
    encoding.encode().unwrap()
}

/// Returns the messages of a body.
fn items(wire_format: WireFormat, encoded: &EncodedRequest) -> Vec<String> {
    let body = std::str::from_utf8(&encoded.body).unwrap();
    let list = if wire_format == WireFormat::Responses { "input" } else { "messages" };
    RawJson(body).get(list).unwrap().elements().map(|item| item.0.to_owned()).collect()
}

proptest! {
    #[test]
    fn looking_at_the_end_only_changes_nothing_but_where_marks_stand(list in any_conversation(), sent in 0usize..400) {
        let wire_format = list.wire_format;
        let prompt = prompt(wire_format, list.messages());
        let envelope = envelope(wire_format);
        let all = encode(&envelope, &prompt, 0, &CallOverrides::default());
        let near = encode(&envelope, &prompt, sent, &CallOverrides::default());
        let bare = |encoded: &EncodedRequest| {
            items(wire_format, encoded).iter().map(|item| CacheMarks::removed_from(item).into_owned()).collect::<Vec<_>>()
        };
        prop_assert_eq!(bare(&all), bare(&near));
        prop_assert_eq!(&all.fingerprint, &near.fingerprint);
        // The marks are where they are reported to be.
        let shift = usize::from(wire_format == WireFormat::Chat);
        let marked: Vec<usize> = items(wire_format, &near)
            .iter()
            .enumerate()
            .skip(shift)
            .filter(|(_, item)| CacheMarks::count_in(item) > 0)
            .map(|(at, _)| at - shift)
            .collect();
        if near.marks.of_client == 0 {
            prop_assert_eq!(&marked, &near.marks.on_messages);
        }
        let body = std::str::from_utf8(&near.body).unwrap();
        let system = RawJson(body).get("system").map_or(0, |system| CacheMarks::count_in(system.0));
        let total: usize = items(wire_format, &near).iter().map(|item| CacheMarks::count_in(item)).sum();
        prop_assert!(total + system <= CacheMarks::MOST, "{} + {}", total, system);
    }
}

#[test]
fn what_differs_for_one_call_leaves_the_messages_alone() {
    let picture = throughline_testkit::from_picture(WireFormat::Anthropic, "uauau");
    let prompt = prompt(WireFormat::Anthropic, picture.messages());
    let envelope = envelope(WireFormat::Anthropic);
    let usual = encode(&envelope, &prompt, 0, &CallOverrides::default());
    let own = CallOverrides { output_cap_tokens: Some(77), model: Some("other".to_owned()) };
    let lowered = encode(&envelope, &prompt, 0, &own);
    let body = RawJson(std::str::from_utf8(&lowered.body).unwrap());
    assert_eq!(body.get("max_tokens").unwrap().0, "77");
    assert_eq!(body.get("model").unwrap().as_text().unwrap(), "other");
    assert_eq!(items(WireFormat::Anthropic, &usual), items(WireFormat::Anthropic, &lowered));
}

#[test]
fn a_provider_that_routes_by_key_gets_one_unless_the_client_gave_its_own() {
    let picture = throughline_testkit::from_picture(WireFormat::Responses, "ua");
    let prompt = prompt(WireFormat::Responses, picture.messages());
    let key = |envelope: &Envelope| {
        let encoded = encode(envelope, &prompt, 0, &CallOverrides::default());
        let body = RawJson(std::str::from_utf8(&encoded.body).unwrap());
        body.get("prompt_cache_key").unwrap().as_text().unwrap().into_owned()
    };
    let ours = key(&envelope(WireFormat::Responses));
    assert!(ours.starts_with("throughline-"), "{ours}");
    assert_eq!(key(&envelope(WireFormat::Responses)), ours);
    let body = br#"{"model":"gpt-5","prompt_cache_key":"mine","input":[]}"#.to_vec();
    let theirs = Envelope::of_request(Request::decode(WireFormat::Responses, body).unwrap());
    assert_eq!(key(&theirs), "mine");
}

#[test]
fn a_client_that_begins_to_place_marks_does_not_move_the_prefix() {
    let marked =
        r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#;
    for wire_format in [WireFormat::Anthropic, WireFormat::Chat] {
        let mut messages = throughline_testkit::from_picture(wire_format, "uaua").messages();
        let before = encode(
            &envelope(wire_format),
            &prompt(wire_format, messages.clone()),
            0,
            &CallOverrides::default(),
        );
        messages.push(throughline_transcript::decode_message_text(marked.to_owned()).unwrap());
        let after =
            encode(&envelope(wire_format), &prompt(wire_format, messages), 4, &CallOverrides::default());
        assert_eq!((before.marks.of_client, after.marks.of_client), (0, 1), "{wire_format}");
        let bare = |encoded: &EncodedRequest| {
            let body = std::str::from_utf8(&encoded.body).unwrap();
            let system =
                RawJson(body).get("system").map(|system| CacheMarks::removed_from(system.0).into_owned());
            let items = items(wire_format, encoded);
            (system, items.iter().map(|item| CacheMarks::removed_from(item).into_owned()).collect::<Vec<_>>())
        };
        let ((system, items), (later_system, later_items)) = (bare(&before), bare(&after));
        assert_eq!(system, later_system, "{wire_format}");
        assert_eq!(items[..], later_items[..items.len()], "{wire_format}");
    }
}

#[test]
fn marks_of_a_client_stay_and_get_no_company() {
    let json =
        r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#;
    let mut messages = throughline_testkit::from_picture(WireFormat::Anthropic, "uaua").messages();
    messages.push(throughline_transcript::decode_message_text(json.to_owned()).unwrap());
    let prompt = prompt(WireFormat::Anthropic, messages);
    let encoded = encode(&envelope(WireFormat::Anthropic), &prompt, 3, &CallOverrides::default());
    assert_eq!(encoded.marks.of_client, 1);
    assert_eq!(items(WireFormat::Anthropic, &encoded).last().unwrap(), json);
    let body = std::str::from_utf8(&encoded.body).unwrap();
    assert_eq!(body.matches("cache_control").count(), 1, "{body}");
}

proptest! {
    /// Without marks of ours, every message is what the client wrote, including as many of its marks as a provider accepts.
    #[test]
    fn without_marks_of_ours_every_message_stays_as_it_was_written(list in any_conversation()) {
        let wire_format = list.wire_format;
        let prompt = prompt(wire_format, list.messages());
        let written: Vec<String> = prompt.messages.iter().map(|message| message.json().to_owned()).collect();
        let encoded = encode_as(Marking::OfClient, &envelope(wire_format), &prompt, 3, &CallOverrides::default());
        let shift = usize::from(wire_format == WireFormat::Chat);
        let sent = &items(wire_format, &encoded)[shift..];
        prop_assert_eq!(encoded.marks.on_messages.len(), 0);
        let bare = |all: &[String]| all.iter().map(|item| CacheMarks::removed_from(item).into_owned()).collect::<Vec<_>>();
        prop_assert_eq!(bare(sent), bare(&written));
        let ours = encode(&envelope(wire_format), &prompt, 3, &CallOverrides::default());
        prop_assert_eq!(encoded.fingerprint, ours.fingerprint);
    }
}
