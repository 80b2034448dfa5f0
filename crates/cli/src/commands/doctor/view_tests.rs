//! The output of `doctor`.

use throughline_store::{ArtifactId, LostArtifact, SalvageReport, SalvagedTable};

use super::*;
use crate::record::test_samples::{id, plain, widest};

fn path() -> &'static Path {
    Path::new("/home/ada/.throughline/record.db")
}

fn some() -> Vec<RecordProblem> {
    vec![
        RecordProblem::LostArtifacts {
            count: 2,
            artifacts: vec![LostArtifact {
                id: ArtifactId::from_text("00112233445566778899aabbccddeeff"),
                problem: "missing".to_owned(),
                path: "/x".into(),
                sessions: vec![id("a")],
                messages: 3,
            }],
        },
        RecordProblem::WrongCounters {
            count: 9,
            sessions: (1..=9).map(|n| id(&format!("session_{n}"))).collect(),
        },
        RecordProblem::LostPreambles { count: 12 },
    ]
}

#[test]
fn each_finding_says_what_it_means_and_what_can_be_done() {
    let found = Diagnosis {
        findings: some(),
        sessions: 22,
        messages: 3_376,
        artifacts: 5,
        database_bytes: 4_100_000,
    };
    let page = diagnosis(&found, path(), Depth::Thorough, 80);
    assert!(widest(&page) <= 80);
    insta::assert_snapshot!(plain(&page));
}

#[test]
fn a_healthy_record_takes_two_lines() {
    let found = Diagnosis { sessions: 1, messages: 2, ..Diagnosis::default() };
    insta::assert_snapshot!(plain(&diagnosis(&found, path(), Depth::Quick, 80)));
    let none =
        Diagnosis { findings: vec![RecordProblem::NoRecord { path: path().into() }], ..Diagnosis::default() };
    assert_eq!(
        plain(&diagnosis(&none, path(), Depth::Quick, 80)),
        "There is no record yet: /home/ada/.throughline/record.db\n"
    );
}

#[test]
fn mending_tells_what_it_did_and_what_it_could_not() {
    let mut before = some();
    before.push(RecordProblem::Damage { problems: vec!["page 7 is never used".to_owned()] });
    let report = RepairReport {
        after: vec![some().remove(0)],
        before,
        backup: Some("/home/ada/.throughline/before_fix_20261115_120000.tar".into()),
        salvaged: Some(SalvageReport {
            damaged: "/home/ada/.throughline/record.db.damaged".into(),
            tables: vec![
                SalvagedTable { name: "sessions", rows: 22, has_losses: false },
                SalvagedTable { name: "messages", rows: 3_300, has_losses: true },
            ],
        }),
    };
    let page = mended(&report, path(), 80);
    assert!(widest(&page) <= 80);
    insta::assert_snapshot!(plain(&page));
    let nothing = RepairReport { before: Vec::new(), after: Vec::new(), backup: None, salvaged: None };
    assert!(plain(&mended(&nothing, path(), 80)).starts_with("Nothing to repair: "));
}
