//! Scenarios are equal for equal seeds, valid in their wire format, and reach every fate.

use std::collections::HashSet;

use throughline_transcript::{Groups, violations};

use super::*;

const WIRES: [WireFormat; 3] = [WireFormat::Chat, WireFormat::Anthropic, WireFormat::Responses];

fn some(wire_format: WireFormat, seed: u64) -> Scenario {
    scenario(ScenarioOptions { wire_format, turns: 10, seed })
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for wire_format in WIRES {
        assert_eq!(some(wire_format, 5).list, some(wire_format, 5).list);
        assert_ne!(some(wire_format, 5).list, some(wire_format, 6).list);
    }
}

#[test]
fn every_list_is_accepted_on_its_wire() {
    for wire_format in WIRES {
        for seed in 0..40 {
            let messages = some(wire_format, seed).list.messages();
            let broken = violations(wire_format, &messages, &Groups::of(&messages));
            assert!(broken.is_empty(), "{wire_format} {seed}: {broken:?}");
        }
    }
}

#[test]
fn every_request_stands_in_its_message_and_has_a_subject_of_its_own() {
    for seed in 0..40 {
        let scenario = some(WIRES[seed as usize % 3], seed);
        let mut live = HashSet::new();
        for request in &scenario.requests {
            let message = scenario.list.messages()[request.message].json().to_owned();
            assert!(message.contains(&request.subject), "{message}");
            if request.fate != RequestFate::Superseded {
                assert!(live.insert(&request.subject), "{}", request.subject);
            }
        }
    }
}

#[test]
fn every_fate_occurs() {
    let fates: HashSet<RequestFate> =
        (0..60).flat_map(|seed| some(WireFormat::Chat, seed).requests).map(|request| request.fate).collect();
    assert_eq!(fates.len(), 7);
}
