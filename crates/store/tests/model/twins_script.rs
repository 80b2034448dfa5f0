//! Made-up sequences of operations, small enough to collide often: few owners, few words, sessions named by the step
//! that opened them.

use proptest::prelude::*;
use throughline_store::LinkKind;

/// One operation. Sessions are numbers of steps: those that open one name it after themselves.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Open { owner: u8, link: Option<(LinkKind, usize, u64)>, title: u8, key: u8 },
    Append { session: usize, words: Vec<Said> },
    Continue { session: usize, made_before: u64, has_summary: bool, view: Vec<Shown> },
    Undo { session: usize, limit: u64 },
    Redo { session: usize },
    End { session: usize, reason: u8 },
    Rename { session: usize, title: u8 },
    Delete { session: usize, with_dependants: bool },
    Book { session: usize, calls: Vec<(u8, u8, i64)> },
    Keep { session: usize, text: u8 },
    Guard { session: usize, name: u8, expires_ms: Option<i64>, is_set: bool },
    Lock { name: u8, holder: u8, now_ms: i64 },
    Unlock { name: u8, holder: u8 },
}

/// A message to be appended.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) words: u8,
    pub(crate) role: u8,
    pub(crate) tool: u8,
    pub(crate) at_ms: i64,
    pub(crate) rendition: bool,
}

/// An item of a view, by places relative to what is there.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    Range { session: usize, first: u64, length: u64, is_open: bool },
    Rendition { session: usize, seq: u64 },
    Summary,
    OldSummary(u64),
    Synthetic,
}

pub(crate) const NAMES: [&str; 13] = [
    "append", "book", "continue", "delete", "end", "guard", "keep", "lock", "open", "redo", "rename", "undo",
    "unlock",
];

impl Step {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Append { .. } => "append",
            Self::Continue { .. } => "continue",
            Self::Undo { .. } => "undo",
            Self::Redo { .. } => "redo",
            Self::End { .. } => "end",
            Self::Rename { .. } => "rename",
            Self::Delete { .. } => "delete",
            Self::Book { .. } => "book",
            Self::Keep { .. } => "keep",
            Self::Guard { .. } => "guard",
            Self::Lock { .. } => "lock",
            Self::Unlock { .. } => "unlock",
        }
    }
}

/// Sequences of a few dozen steps; the first opens a session.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<Step>> {
    let first = (0..4_u8, 0..3_u8).prop_map(|(title, key)| Step::Open { owner: 0, link: None, title, key });
    let rest = prop::collection::vec(passage(), 2..20);
    (first, rest).prop_map(|(first, rest)| std::iter::once(first).chain(rest.into_iter().flatten()).collect())
}

/// A step, or a few that lead somewhere: redo needs an undo, undo a compaction.
fn passage() -> impl Strategy<Value = Vec<Step>> {
    let fold = || {
        (0..2_u64, 0..3_u64).prop_map(|(made_before, first)| Step::Continue {
            session: 0,
            made_before,
            has_summary: true,
            view: vec![Shown::Summary, Shown::Range { session: 0, first, length: 0, is_open: true }],
        })
    };
    let undo = || Just(Step::Undo { session: 0, limit: u64::MAX });
    let redo = || Just(Step::Redo { session: 0 });
    prop_oneof![
        8 => step().prop_map(|step| vec![step]),
        1 => fold().prop_map(|fold| vec![fold]),
        1 => (fold(), append(), undo(), append()).prop_map(|(fold, said, undo, more)| vec![fold, said, undo, more]),
        1 => (fold(), fold(), undo(), append(), undo()).prop_map(|(a, b, c, d, e)| vec![a, b, c, d, e]),
        1 => (undo(), append(), redo(), append()).prop_map(|(undo, said, redo, more)| vec![undo, said, redo, more]),
        1 => redo().prop_map(|redo| vec![redo]),
    ]
}

/// Something said in the latest session.
fn append() -> impl Strategy<Value = Step> {
    prop::collection::vec(said(), 0..3).prop_map(|words| Step::Append { session: 0, words })
}

fn said() -> impl Strategy<Value = Said> {
    (0..20_u8, 0..5_u8, 0..4_u8, -50..5_000_i64, prop::bool::weighted(0.2))
        .prop_map(|(words, role, tool, at_ms, rendition)| Said { words, role, tool, at_ms, rendition })
}

/// Mostly a session of late, which mostly can go on; act.rs takes it modulo what is there.
fn session() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..3_usize, 2 => 0..40_usize]
}

fn step() -> impl Strategy<Value = Step> {
    let link = (
        prop_oneof![
            2 => Just(LinkKind::Branch),
            1 => Just(LinkKind::Continuation),
            1 => Just(LinkKind::SubAgent),
            1 => Just(LinkKind::SideCall),
            1 => Just(LinkKind::SideBranch)
        ],
        session(),
        0..4_u64,
    );
    let shown = prop_oneof![
        4 => (session(), 0..5_u64, 0..4_u64, prop::bool::weighted(0.2))
            .prop_map(|(session, first, length, is_open)| Shown::Range { session, first, length, is_open }),
        1 => (session(), 0..5_u64).prop_map(|(session, seq)| Shown::Rendition { session, seq }),
        3 => Just(Shown::Summary),
        1 => (1..4_u64).prop_map(Shown::OldSummary),
        1 => Just(Shown::Synthetic),
    ];
    prop_oneof![
        4 => (prop::bool::weighted(0.2), prop::option::weighted(0.7, link), 0..4_u8, 0..3_u8)
            .prop_map(|(owner, link, title, key)| Step::Open { owner: owner.into(), link, title, key }),
        10 => (session(), prop::collection::vec(said(), 0..5))
            .prop_map(|(session, words)| Step::Append { session, words }),
        6 => (session(), 0..2_u64, prop::bool::weighted(0.8), prop::collection::vec(shown, 0..4))
            .prop_map(|(session, made_before, has_summary, view)| {
                Step::Continue { session, made_before, has_summary, view }
            }),
        3 => (session(), prop_oneof![Just(u64::MAX), 0..60_u64])
            .prop_map(|(session, limit)| Step::Undo { session, limit }),
        3 => session().prop_map(|session| Step::Redo { session }),
        1 => (session(), 0..3_u8).prop_map(|(session, reason)| Step::End { session, reason }),
        1 => (session(), 0..4_u8).prop_map(|(session, title)| Step::Rename { session, title }),
        1 => (session(), any::<bool>())
            .prop_map(|(session, with_dependants)| Step::Delete { session, with_dependants }),
        2 => (session(), prop::collection::vec((0..4_u8, 0..3_u8, -100..200_000_000_i64), 0..4))
            .prop_map(|(session, calls)| Step::Book { session, calls }),
        2 => (session(), 0..5_u8).prop_map(|(session, text)| Step::Keep { session, text }),
        1 => (session(), 0..2_u8, prop::option::of(0..1_000_i64), any::<bool>())
            .prop_map(|(session, name, expires_ms, is_set)| Step::Guard { session, name, expires_ms, is_set }),
        1 => (0..2_u8, 0..3_u8, 0..2_000_i64).prop_map(|(name, holder, now_ms)| Step::Lock { name, holder, now_ms }),
        1 => (0..2_u8, 0..3_u8).prop_map(|(name, holder)| Step::Unlock { name, holder }),
    ]
}
