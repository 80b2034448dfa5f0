//! What the sent views contain: answers to the questions of a reader who takes over at a marked line, and the anchors (paths, names,
//! flags, hashes, numbers) in the arguments of the agent's calls that occurred earlier in the conversation.
//!
//! An anchor that is not in the view can be looked up. The query is the agent's last text before the call, without the anchor, and the
//! first five passages count. Plain BM25 over the same messages is the baseline.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_replay::Recording;
use throughline_store::{NewMessage, NewSession, Origin, Owner, SessionId, SqliteStore, Store};
use throughline_transcript::{DecodeOptions, Message, Transcript};
use throughline_wire::Request;

use crate::anchor::{AnchorFinder, stands_in};
use crate::recall::{recalled, recalled_plainly};
use crate::retention::{Counting, all_text, argument_strings};
use crate::store::told;
use crate::takeover::sent::{Marks, ViewScore, asked_percent};

/// The number of passages of a recall that count.
const PASSAGES: usize = 5;
/// The longest query, in characters of the agent's text.
const QUESTION_CHARS: usize = 2_000;

/// A use of an anchor that occurred earlier in the conversation.
struct Need {
    call: usize,
    anchor: String,
}

/// A session whose views are checked.
pub(super) struct Watched {
    name: String,
    texts: Vec<String>,
    needs: Vec<Need>,
    /// The first call whose request contains everything before the marked line.
    cut_call: Option<usize>,
}

/// The observations of one session in one mode.
#[derive(Default)]
struct Seen {
    /// For each need, whether its anchor was in the view.
    present: Vec<bool>,
    /// The view at the marked line.
    view: Vec<String>,
}

/// The sums of a mode.
#[derive(Default)]
pub(super) struct ModeMemory {
    sessions: Vec<(Arc<Watched>, Vec<bool>)>,
    views: Vec<(String, ViewScore)>,
}

/// Observes one session in one mode.
pub(super) struct Watch {
    watched: Arc<Watched>,
    seen: Arc<Mutex<Seen>>,
}

impl Watched {
    /// Prepares a session; `log` is its file, for the marked line.
    pub(super) fn new(
        name: &str,
        recording: &Recording,
        log: &[u8],
        marks: &Marks,
        finder: &AnchorFinder,
    ) -> Self {
        let texts: Vec<String> = said(recording).map(|(_, message)| text_of(message)).collect();
        let cut = marks.cut(name).and_then(|line| messages_before(log, line));
        let is_whole =
            |call: &throughline_replay::RecordedCall| cut.is_some_and(|cut| call.answer.start >= cut);
        Self {
            name: name.to_owned(),
            needs: needs(recording, &texts, finder),
            texts,
            cut_call: recording.calls.iter().position(is_whole),
        }
    }

    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        let seen = Seen { present: vec![false; self.needs.len()], view: Vec::new() };
        Watch { watched: Arc::clone(self), seen: Arc::new(Mutex::new(seen)) }
    }
}

impl Watch {
    /// Returns the observer of every request.
    pub(super) fn observer(&self) -> impl Fn(usize, &Request) + Send + Sync + 'static + use<> {
        let (watched, seen) = (Arc::clone(&self.watched), Arc::clone(&self.seen));
        move |call: usize, request: &Request| {
            let view: Vec<String> = request.messages().iter().map(text_of).collect();
            let whole = view.join("\n");
            let mut seen = lock(&seen);
            let needed = watched.needs.iter().zip(&mut seen.present).filter(|(need, _)| need.call == call);
            needed.for_each(|(need, present)| *present = stands_in(&whole, &need.anchor));
            if watched.cut_call == Some(call) {
                seen.view = view;
            }
        }
    }

    /// Adds the observations to the sums of a mode.
    pub(super) fn end(self, marks: &Marks, into: &mut ModeMemory) -> Result<(), String> {
        let seen = std::mem::take(&mut *lock(&self.seen));
        if self.watched.cut_call.is_some() {
            into.views.push((self.watched.name.clone(), marks.score(&self.watched.name, &seen.view)?));
        }
        into.sessions.push((self.watched, seen.present));
        Ok(())
    }
}

// The values are plain, so a panic elsewhere leaves them usable.
fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text_of(message: &Message) -> String {
    all_text(message, Counting::Everything)
}

/// The messages of the conversation with their positions, without summaries of the recorded client.
fn said(recording: &Recording) -> impl Iterator<Item = (usize, &Message)> {
    let is_summary = |place: &usize| {
        recording.compactions.iter().any(|made| made.summary_follows && made.message == *place)
    };
    recording.messages.iter().enumerate().filter(move |(place, _)| !is_summary(place))
}

/// The number of messages in a log before a line.
fn messages_before(log: &[u8], line: usize) -> Option<usize> {
    let past: Vec<u8> =
        log.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).flatten().copied().collect();
    Some(Transcript::decode(past, &DecodeOptions::default()).ok()?.messages.len())
}

/// The anchors of every call that occurred earlier in the conversation.
fn needs(recording: &Recording, texts: &[String], finder: &AnchorFinder) -> Vec<Need> {
    let places: Vec<usize> = said(recording).map(|(place, _)| place).collect();
    let (mut needs, mut past, mut next) = (Vec::new(), String::new(), 0);
    for (number, call) in recording.calls.iter().enumerate() {
        while places.get(next).is_some_and(|place| *place < call.answer.start) {
            past.push_str(texts.get(next).map_or("", String::as_str));
            past.push('\n');
            next += 1;
        }
        let answer = recording.messages.get(call.answer.clone()).unwrap_or_default();
        let mut anchors = BTreeSet::new();
        for message in answer {
            anchors.extend(finder.find(&argument_strings(message)).into_iter().map(str::to_owned));
        }
        let known = anchors.into_iter().filter(|anchor| stands_in(&past, anchor));
        needs.extend(known.map(|anchor| Need { call: number, anchor }));
    }
    needs
}

/// The result of searches for an anchor that is not in a view.
#[derive(Clone, Copy, Debug, Default)]
struct LookedUp {
    /// Whether the search of the record finds it.
    found: bool,
    /// Whether plain BM25 finds it.
    found_plainly: bool,
    /// Whether the question shares a word with any passage that contains the anchor; without one, no search by words finds it.
    shares_word: bool,
}

/// For each need that a mode misses: whether a recall finds the anchor, whether plain BM25 does, and whether any search by words could.
fn looked_up(
    watched: &Watched,
    recording: &Recording,
    missed: &[bool],
    folder: &Path,
) -> Result<Vec<LookedUp>, String> {
    let mut found = vec![LookedUp::default(); watched.needs.len()];
    let store =
        SqliteStore::open(&folder.join(format!("{}.db", watched.name.replace('/', "-"))), 1).map_err(told)?;
    let (owner, id) = (Owner::default(), SessionId::from_text("watched"));
    store
        .open_session(
            NewSession {
                id: id.clone(),
                owner: owner.clone(),
                link: None,
                started_ms: 1,
                model: None,
                title: None,
                origin: Origin { program: "bench".to_owned(), key: None, project: None },
                wire_format: recording.wire_format,
            },
            None,
        )
        .map_err(told)?;
    let messages: Vec<(usize, &Message)> = said(recording).collect();
    let mut next = 0;
    for (number, call) in recording.calls.iter().enumerate() {
        let asked: Vec<usize> = (0..watched.needs.len())
            .filter(|at| watched.needs.get(*at).is_some_and(|need| need.call == number))
            .filter(|at| missed.get(*at).copied().unwrap_or_default())
            .collect();
        if asked.is_empty() {
            continue;
        }
        let from = next;
        while messages.get(next).is_some_and(|(place, _)| *place < call.answer.start) {
            next += 1;
        }
        let new = messages.get(from..next).unwrap_or_default().iter().map(|(place, message)| NewMessage {
            message: (*message).clone(),
            tokens: 0,
            at_ms: *place as i64,
            tools: Vec::new(),
            rendition: None,
        });
        store.append(&owner, &id, new.collect()).map_err(told)?;
        let words = last_words(recording, call.answer.clone());
        let questions: Vec<(String, &str)> = asked
            .iter()
            .filter_map(|at| watched.needs.get(*at))
            .map(|need| (words.replace(&need.anchor, " "), need.anchor.as_str()))
            .collect();
        let plainly = recalled_plainly(watched.texts.get(..next).unwrap_or_default(), &questions, PASSAGES);
        for ((at, (question, _)), plain) in asked.iter().zip(&questions).zip(plainly) {
            let (Some(need), Some(place)) = (watched.needs.get(*at), found.get_mut(*at)) else { continue };
            let ranked = recalled(&store, question, PASSAGES)?;
            *place = LookedUp {
                found: stands_in(&ranked, &need.anchor),
                found_plainly: stands_in(&plain.text, &need.anchor),
                shares_word: plain.shares_word,
            };
        }
    }
    Ok(found)
}

/// The agent's last text before its calls.
fn last_words(recording: &Recording, answer: std::ops::Range<usize>) -> String {
    let spoken = recording.messages.get(..answer.end).unwrap_or_default().iter().rev();
    let spoken = spoken.filter(|message| message.role() == throughline_transcript::Role::Assistant);
    let text = spoken.map(|message| message.text().trim().to_owned()).find(|text| !text.is_empty());
    text.unwrap_or_default().chars().take(QUESTION_CHARS).collect()
}

/// Formats the table, with a line for each mode. The first one is the baseline of the others.
pub(super) fn table(
    modes: &[(&str, ModeMemory)],
    recordings: &[(String, Recording)],
    lists_missing: bool,
) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut lookups = Vec::new();
    let (_, first) = modes.first().ok_or("no mode was run")?;
    for (place, (watched, _)) in first.sessions.iter().enumerate() {
        let misses = |at: usize| {
            let of_mode = |mode: &ModeMemory| mode.sessions.get(place)?.1.get(at).copied();
            modes.iter().any(|(_, mode)| of_mode(mode) == Some(false))
        };
        let missed: Vec<bool> = (0..watched.needs.len()).map(misses).collect();
        let recording = recordings.iter().find(|(name, _)| *name == watched.name);
        let Some((_, recording)) = recording else { return Err(format!("no recording {}", watched.name)) };
        lookups.push(looked_up(watched, recording, &missed, folder.path())?);
    }
    let mut out = format!(
        "{:<22} {:>7} {:>7} {:>6} {:>6} {:>6} {:>7} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8}\n",
        "memory",
        "tokens",
        "probes",
        "asked",
        "each",
        "noted",
        "(off)",
        "anchors",
        "in view",
        "or recall",
        "recall",
        "BM25",
        "words"
    );
    if lists_missing {
        for ((watched, _), lookup) in first.sessions.iter().zip(&lookups) {
            let is_missed = |at: usize| {
                let of_mode = |mode: &ModeMemory| {
                    let (_, seen) = mode.sessions.iter().find(|(one, _)| one.name == watched.name)?;
                    seen.get(at).copied()
                };
                modes.iter().any(|(_, mode)| of_mode(mode) == Some(false))
            };
            let missing = watched.needs.iter().zip(lookup).enumerate();
            for (_, (need, lookup)) in missing.filter(|(at, _)| is_missed(*at)) {
                let words = |found: bool| if found { "found" } else { "not found" };
                let _ = writeln!(
                    out,
                    "  {} call {}: {} {} (BM25 {})",
                    watched.name,
                    need.call,
                    need.anchor,
                    words(lookup.found),
                    words(lookup.found_plainly)
                );
            }
        }
    }
    if lists_missing {
        for (name, mode) in modes {
            for (session, view) in &mode.views {
                let notes = if view.notes.is_some() { "compacted" } else { "whole" };
                let _ = writeln!(
                    out,
                    "  {name}: {session} {} tokens, {} of {} questions, {notes}",
                    view.tokens, view.answered, view.probes
                );
            }
        }
    }
    for (name, mode) in modes {
        let views = mode.views.iter().map(|(_, view)| view);
        let sum = |of: fn(&ViewScore) -> usize| views.clone().map(of).sum::<usize>();
        let tokens = sum(|view| view.tokens) as f64 / mode.views.len().max(1) as f64;
        let (noted, noted_first) = notes_beside(mode, first);
        let (mut needs, mut present, mut either, mut missing, mut found, mut plain, mut shares) =
            (0, 0, 0, 0, 0, 0, 0);
        for ((_, seen), lookup) in mode.sessions.iter().zip(&lookups) {
            for (is_present, lookup) in seen.iter().zip(lookup) {
                needs += 1;
                present += usize::from(*is_present);
                either += usize::from(*is_present || lookup.found);
                missing += usize::from(!is_present);
                found += usize::from(!is_present && lookup.found);
                plain += usize::from(!is_present && lookup.found_plainly);
                shares += usize::from(!is_present && lookup.shares_word);
            }
        }
        let own_size = mode.views.iter().map(|(_, view)| asked_percent(view.tokens as f64)).sum::<f64>();
        let _ = writeln!(
            out,
            "{name:<22} {tokens:>7.0} {:>6.1}% {:>5.1}% {:>5.1}% {noted:>5.1}% {noted_first:>6.1}% {needs:>8} {:>7.1}% {:>8.1}% {:>7.1}% {:>7.1}% {:>7.1}%",
            share(sum(|view| view.answered), sum(|view| view.probes)),
            asked_percent(tokens),
            own_size / mode.views.len().max(1) as f64,
            share(present, needs),
            share(either, needs),
            share(found, missing),
            share(plain, missing),
            share(shares, missing),
        );
    }
    out.push_str(
        "tokens, probes: of the messages sent where a session was marked, and the share of the questions that they answer; asked: what a view \n\
         of that mean size has to answer; each: the mean of what each has to answer at its own size. noted: everything that was marked, in notes, where this mode and `off` both have notes; (off): in those of \n\
         `off`. anchors: uses of exact strings that were in the conversation before; in view: of those sent; or recall: or in the first five \n\
         passages of one search; recall, BM25: of those missing in the view, by the search of the record and by plain BM25; words: of those missing, where the question has any word of a passage with the string.\n",
    );
    Ok(out)
}

/// The scores of the notes of two modes, over the sessions in which both have notes.
fn notes_beside(mode: &ModeMemory, other: &ModeMemory) -> (f64, f64) {
    let pairs = mode.views.iter().filter_map(|(name, view)| {
        let (_, beside) = other.views.iter().find(|(one, _)| one == name)?;
        Some((view.notes?, beside.notes?))
    });
    let (mut ours, mut theirs) = ((0, 0), (0, 0));
    for (one, two) in pairs {
        ours = (ours.0 + one.0, ours.1 + one.1);
        theirs = (theirs.0 + two.0, theirs.1 + two.1);
    }
    (share(ours.0, ours.1), share(theirs.0, theirs.1))
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
