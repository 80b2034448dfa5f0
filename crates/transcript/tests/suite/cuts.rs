//! Where a conversation may be parted, as pictures: a dot stands where a cut is allowed. Each rule alone, then together.

use throughline_testkit::from_picture;
use throughline_transcript::{CutPoints, CutRule, Groups, WireFormat};

/// Draws the allowed cuts into the picture (of letters only).
fn drawn(wire_format: WireFormat, picture: &str, rules: &[CutRule]) -> String {
    let letters: Vec<char> = picture.chars().collect();
    let messages = from_picture(wire_format, picture).messages();
    assert_eq!(messages.len(), letters.len(), "one letter a message in {picture}");
    let cuts = CutPoints::of(&messages, &Groups::of(&messages), rules);
    let mut out = String::new();
    for (index, letter) in letters.iter().enumerate() {
        if cuts.allows(index) {
            out.push('.');
        }
        out.push(*letter);
    }
    if cuts.allows(letters.len()) {
        out.push('.');
    }
    out
}

fn check(wire_format: WireFormat, rules: &[CutRule], wanted: &[&str]) {
    for picture in wanted {
        let letters: String = picture.chars().filter(|c| *c != '.').collect();
        assert_eq!(drawn(wire_format, &letters, rules), *picture, "{wire_format}");
    }
}

#[test]
fn without_rules_every_cut_is_allowed() {
    check(WireFormat::Chat, &[], &[".s.u.A.T.a.", "."]);
}

#[test]
fn calls_and_results_stay_together() {
    check(
        WireFormat::Chat,
        &[CutRule::Pairing],
        &[".s.u.AT.a.", ".u.AuT.a.", ".u.A.", ".X.u.", ".u.AT.AT.AT."],
    );
    check(WireFormat::Anthropic, &[CutRule::Pairing], &[".u.AT.AH.a."]);
    check(WireFormat::Responses, &[CutRule::Pairing], &[".u.r.AATT.r.AT.a."]);
}

#[test]
fn answers_stay_whole() {
    check(
        WireFormat::Responses,
        &[CutRule::GroupAtomicity],
        &[".u.rAATT.rAT.ra.", ".u.raAT.u.", ".u.aa.o.a."],
    );
    check(WireFormat::Chat, &[CutRule::GroupAtomicity], &[".u.AT.r.a.", ".s.d.u.m.AT."]);
}

#[test]
fn what_precedes_may_lead_a_request() {
    check(WireFormat::Chat, &[CutRule::LeadingRole], &[".s.d.u.a.", ".s.a", ".a", ".s.Xu", ".", ".s."]);
    check(WireFormat::Anthropic, &[CutRule::LeadingRole], &[".Xua", ".u.a."]);
}

#[test]
fn rules_together_allow_what_each_of_them_does() {
    let all: [CutRule; 3] = [CutRule::Pairing, CutRule::GroupAtomicity, CutRule::LeadingRole];
    check(WireFormat::Chat, &all, &[".s.u.AT.AT.a.u.", ".u.AT.", ".s.a"]);
    check(WireFormat::Responses, &all, &[".d.u.rAATT.ra.u."]);
    check(WireFormat::Anthropic, &all, &[".u.AT.AH.a.u."]);
    for picture in ["suATATau", "uAuTa", "uXa"] {
        let messages = from_picture(WireFormat::Chat, picture).messages();
        let groups = Groups::of(&messages);
        let together = CutPoints::of(&messages, &groups, &all);
        for cut in 0..=messages.len() {
            let each = all.iter().all(|rule| CutPoints::of(&messages, &groups, &[*rule]).allows(cut));
            assert_eq!(together.allows(cut), each, "{picture} at {cut}");
        }
    }
}

#[test]
fn the_nearest_cut_is_found_within_bounds() {
    let mut cuts = CutPoints::all(6);
    for cut in [2, 3, 4] {
        cuts.forbid(cut);
    }
    cuts.forbid(99);
    assert_eq!(cuts.iter().collect::<Vec<_>>(), [0, 1, 5, 6]);
    assert_eq!(cuts.at_or_before(4, 0), Some(1));
    assert_eq!(cuts.at_or_before(5, 0), Some(5));
    assert_eq!(cuts.at_or_before(4, 2), None);
    assert_eq!(cuts.at_or_before(99, 0), Some(6));
    assert_eq!(cuts.at_or_before(1, 3), None);
    assert!(!cuts.allows(7));
}
