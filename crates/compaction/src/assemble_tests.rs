//! Tests of assembling a view, as pictures: the head, the summary `S`, our acknowledgement `k`, the tail.

use std::ops::Range;

use throughline_testkit::{from_picture, picture};
use throughline_transcript::decode_message_text;

use super::*;
use crate::plan::Earlier;

struct Assembled {
    messages: Vec<Message>,
    items: Vec<ViewItem>,
    repairs: Repairs,
}

fn assembled(
    wire_format: WireFormat,
    list: &str,
    (head, tail): (Range<usize>, Range<usize>),
    pinned: Option<Range<usize>>,
    (summary_role, acknowledge): (Role, bool),
) -> Assembled {
    let messages = from_picture(wire_format, list).messages();
    let groups = Groups::of(&messages);
    let plan = Plan {
        middle: head.end..tail.start,
        head,
        tail,
        pinned,
        earlier: Earlier::default(),
        summary_role,
        acknowledge,
    };
    let (items, repairs) = assemble(wire_format, &messages, &groups, &plan, &HashMap::new(), |kept| {
        format!("{kept} messages follow")
    });
    Assembled { messages, items, repairs }
}

impl Assembled {
    fn drawn(&self) -> String {
        let letter = |item: &ViewItem| match item {
            ViewItem::Summary(json) if json.contains("\"user\"") => "S".to_owned(),
            ViewItem::Summary(_) => "Z".to_owned(),
            ViewItem::Synthetic(Synthetic::Acknowledgement, _) => "k".to_owned(),
            other => {
                let json = other.json(&self.messages).to_owned();
                picture(&[decode_message_text(json).unwrap()]).replace('X', "T")
            }
        };
        self.items.iter().map(letter).collect()
    }

    fn summary(&self) -> String {
        let json = self.items.iter().find(|item| matches!(item, ViewItem::Summary(_))).unwrap();
        decode_message_text(json.json(&self.messages).to_owned()).unwrap().text().into_owned()
    }
}

#[test]
fn pieces_stand_in_their_order_and_the_summary_knows_what_follows() {
    let view = assembled(WireFormat::Chat, "uaATAuATaua", (0..2, 8..11), None, (Role::User, false));
    assert_eq!(view.drawn(), "uaSaua");
    assert_eq!(view.summary(), "3 messages follow");
    let view = assembled(WireFormat::Chat, "uATATATAT", (0..0, 7..9), Some(0..1), (Role::User, true));
    assert_eq!(view.drawn(), "SkuAT");
    assert_eq!(view.summary(), "3 messages follow");
    assert_eq!(view.repairs, Repairs::default());
    for wire_format in WireFormat::ALL {
        let view = assembled(wire_format, "uauaua", (0..1, 4..6), None, (Role::Assistant, false));
        assert_eq!(view.drawn(), "uZua", "{wire_format}");
    }
}

#[test]
fn only_a_prompt_that_leads_gets_the_note() {
    let view = assembled(WireFormat::Chat, "suauaua", (0..2, 5..7), None, (Role::Assistant, false));
    assert!(view.items[0].json(&view.messages).contains("earlier turns of this conversation"));
    assert_eq!(view.items[0].renditions().len(), 1);
    let view = assembled(WireFormat::Chat, "usauaua", (0..2, 5..7), None, (Role::Assistant, false));
    assert_eq!(view.items[..2], [ViewItem::Verbatim(0), ViewItem::Verbatim(1)]);
    // The note is not added again.
    let noted = assembled(WireFormat::Chat, "suauaua", (0..2, 5..7), None, (Role::Assistant, false));
    let json: Vec<String> = noted.items.iter().map(|item| item.json(&noted.messages).to_owned()).collect();
    let messages: Vec<Message> = json.into_iter().map(|text| decode_message_text(text).unwrap()).collect();
    assert_eq!(with_note_on(&messages, 0), None);
}

#[test]
fn the_joint_is_made_anew_where_mending_took_a_neighbour_away() {
    // The tail would start with a result; it is an orphan, so a user message comes first now.
    let view = assembled(WireFormat::Chat, "uaaXuaa", (0..0, 3..7), None, (Role::User, false));
    assert_eq!(view.drawn(), "Skuaa");
    let view = assembled(WireFormat::Chat, "uaaXaa", (0..0, 3..6), None, (Role::User, false));
    assert_eq!(view.drawn(), "Saa");
    // The head would end with a result; now it ends with an assistant message.
    let view = assembled(WireFormat::Chat, "uaXuaau", (0..3, 5..7), None, (Role::Assistant, false));
    assert_eq!(view.drawn(), "uaSau");
    assert_eq!(view.repairs.orphan_results, 1);
}
