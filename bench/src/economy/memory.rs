//! What the sent views contain: answers to the questions of a reader who takes over at a marked line, and the anchors (paths, names,
//! flags, hashes, numbers) in the arguments of the agent's calls that occurred earlier in the conversation.
//!
//! An anchor that is not in the view can be looked up. The recall is asked with the agent's last words before the call, without the
//! anchor. What it answers is the list of names that the view no longer has, which counts as one passage, and passages of the
//! search: five together. Beside it the first five passages of the search alone, and plain BM25 over the same messages: five
//! passages, and as many as are as long as the whole answer.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_lcm::list_names;
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
/// Characters of a list of names.
const LIST_CHARS: usize = 6_000;
/// So many passages are longer than a list and the passages beside it.
const PASSAGES_AT_LENGTH: usize = 40;
/// The longest query, in characters of the agent's text.
const QUESTION_CHARS: usize = 2_000;

/// A use of an anchor that occurred earlier in the conversation.
struct Need {
    call: usize,
    anchor: String,
    /// What a recall is asked with: the agent's last words before the call, without the anchor.
    question: String,
    /// How many messages were there before the call.
    past: usize,
}

/// A session whose views are checked.
pub(super) struct Watched {
    name: String,
    texts: Vec<String>,
    /// The messages of these texts.
    messages: Vec<Message>,
    needs: Vec<Need>,
    /// The first call whose request contains everything before the marked line.
    cut_call: Option<usize>,
}

/// The observations of one session in one mode.
#[derive(Default)]
struct Seen {
    /// For each need, whether its anchor was in the view.
    present: Vec<bool>,
    /// For each need, whether its anchor was not, and is in the list of names that a recall answers with.
    listed: Vec<bool>,
    /// Characters of these lists, and how many there were.
    list_chars: (usize, usize),
    /// The view at the marked line.
    view: Vec<String>,
}

/// The sums of a mode.
#[derive(Default)]
pub(super) struct ModeMemory {
    sessions: Vec<(Arc<Watched>, Vec<NeedSeen>)>,
    /// Characters of the lists of names of all recalls, and how many recalls there were.
    list_chars: (usize, usize),
    views: Vec<(String, ViewScore)>,
}

/// What a mode has of a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeedSeen {
    /// It is in the view.
    InView,
    /// It is not, and the list of names of a recall has it.
    Listed,
    /// Neither.
    Missing,
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
            messages: said(recording).map(|(_, message)| message.clone()).collect(),
            cut_call: recording.calls.iter().position(is_whole),
        }
    }

    /// The messages before a need, with their numbers.
    fn past(&self, need: &Need) -> Vec<(u64, &Message)> {
        (0..).zip(self.messages.iter().take(need.past)).collect()
    }

    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        let none = vec![false; self.needs.len()];
        let seen = Seen { present: none.clone(), listed: none, ..Seen::default() };
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
            let needed = watched.needs.iter().enumerate().filter(|(_, need)| need.call == call);
            for (at, need) in needed {
                let is_present = stands_in(&whole, &need.anchor);
                let list = match is_present {
                    true => None,
                    false => list_names(&need.question, &watched.past(need), request.messages()),
                };
                if let Some(place) = seen.present.get_mut(at) {
                    *place = is_present;
                }
                if let Some(place) = seen.listed.get_mut(at) {
                    *place = list.as_deref().is_some_and(|list| stands_in(list, &need.anchor));
                }
                if !is_present {
                    seen.list_chars.0 += list.map_or(0, |list| list.len());
                    seen.list_chars.1 += 1;
                }
            }
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
        let seen_of = |(present, listed): (bool, bool)| match (present, listed) {
            (true, _) => NeedSeen::InView,
            (false, true) => NeedSeen::Listed,
            (false, false) => NeedSeen::Missing,
        };
        let needs = seen.present.into_iter().zip(seen.listed).map(seen_of).collect();
        into.sessions.push((self.watched, needs));
        into.list_chars.0 += seen.list_chars.0;
        into.list_chars.1 += seen.list_chars.1;
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
        let words = last_words(recording, call.answer.clone());
        needs.extend(known.map(|anchor| {
            let question = words.replace(&anchor, " ");
            Need { call: number, anchor, question, past: next }
        }));
    }
    needs
}

/// The result of searches for an anchor that is not in a view.
#[derive(Clone, Copy, Debug, Default)]
struct LookedUp {
    /// The first passages of the search of the record do, ...
    found: bool,
    /// ... those that fit beside a list of names, ...
    found_beside: bool,
    /// ... plain BM25 does, ...
    found_plainly: bool,
    /// ... and in as many characters as a list and the passages beside it have.
    found_at_length: bool,
    /// Characters of the first passages of the search, of those beside a list, and of plain BM25.
    chars: [usize; 3],
    /// The question has a word of any passage with the anchor: no search by words finds more.
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
        let questions: Vec<(String, &str)> = asked
            .iter()
            .filter_map(|at| watched.needs.get(*at))
            .map(|need| (need.question.clone(), need.anchor.as_str()))
            .collect();
        let past = watched.texts.get(..next).unwrap_or_default();
        let plainly = recalled_plainly(past, &questions, PASSAGES);
        let at_length = recalled_plainly(past, &questions, PASSAGES_AT_LENGTH);
        for (((at, (question, anchor)), plain), long) in
            asked.iter().zip(&questions).zip(plainly).zip(at_length)
        {
            let Some(place) = found.get_mut(*at) else { continue };
            let ranked = recalled(&store, question, PASSAGES)?;
            let beside = recalled(&store, question, PASSAGES - 1)?;
            let length = long.text.floor_char_boundary(beside.len() + LIST_CHARS);
            *place = LookedUp {
                found: stands_in(&ranked, anchor),
                found_beside: stands_in(&beside, anchor),
                found_plainly: stands_in(&plain.text, anchor),
                found_at_length: stands_in(long.text.get(..length).unwrap_or_default(), anchor),
                chars: [ranked.len(), beside.len(), plain.text.len()],
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
            modes.iter().any(|(_, mode)| of_mode(mode).is_some_and(|seen| seen != NeedSeen::InView))
        };
        let missed: Vec<bool> = (0..watched.needs.len()).map(misses).collect();
        let recording = recordings.iter().find(|(name, _)| *name == watched.name);
        let Some((_, recording)) = recording else { return Err(format!("no recording {}", watched.name)) };
        lookups.push(looked_up(watched, recording, &missed, folder.path())?);
    }
    let mut out = format!(
        "{:<22} {:>7} {:>7} {:>6} {:>6} {:>6} {:>7} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
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
        "search",
        "BM25",
        "as long",
        "words"
    );
    let mut sizes = format!(
        "{:<22} {:>7} {:>9} {:>9} {:>9}\n",
        "tokens of an answer", "recall", "search", "BM25", "as long"
    );
    if lists_missing {
        for ((watched, _), lookup) in first.sessions.iter().zip(&lookups) {
            let is_missed = |at: usize| {
                let of_mode = |mode: &ModeMemory| of_mode_at(mode, watched, at);
                modes.iter().any(|(_, mode)| of_mode(mode).is_some_and(|seen| seen != NeedSeen::InView))
            };
            let missing = watched.needs.iter().zip(lookup).enumerate();
            for (at, (need, lookup)) in missing.filter(|(at, _)| is_missed(*at)) {
                let words = |found: bool| if found { "found" } else { "not found" };
                let listed =
                    modes.iter().filter(|(_, mode)| of_mode_at(mode, watched, at) == Some(NeedSeen::Listed));
                let _ = writeln!(
                    out,
                    "  {} call {}: {} {}, listed in {} (BM25 {})",
                    watched.name,
                    need.call,
                    need.anchor,
                    words(lookup.found),
                    listed.map(|(name, _)| *name).collect::<Vec<_>>().join(" and "),
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
        let (mut needs, mut present, mut either, mut missing) = (0, 0, 0, 0);
        let mut found = [0_usize; 5];
        let mut chars = [0_usize; 3];
        for ((_, seen), lookup) in mode.sessions.iter().zip(&lookups) {
            for (seen, lookup) in seen.iter().zip(lookup) {
                let is_present = *seen == NeedSeen::InView;
                let answered = *seen == NeedSeen::Listed || lookup.found_beside;
                needs += 1;
                present += usize::from(is_present);
                either += usize::from(is_present || answered);
                if is_present {
                    continue;
                }
                missing += 1;
                let of_need = [
                    answered,
                    lookup.found,
                    lookup.found_plainly,
                    lookup.found_at_length,
                    lookup.shares_word,
                ];
                found.iter_mut().zip(of_need).for_each(|(sum, is_found)| *sum += usize::from(is_found));
                chars.iter_mut().zip(lookup.chars).for_each(|(sum, chars)| *sum += chars);
            }
        }
        let [answered, by_search, plain, at_length, shares] = found;
        let (listed, lists) = mode.list_chars;
        let mean_tokens = |chars: usize, of: usize| chars as f64 / of.max(1) as f64 / 4.0;
        let [passages, beside, plainly] = chars.map(|chars| mean_tokens(chars, missing));
        let _ = writeln!(
            sizes,
            "{name:<22} {:>7.0} {passages:>9.0} {plainly:>9.0} {:>9.0}",
            beside + mean_tokens(listed, lists),
            beside + LIST_CHARS as f64 / 4.0,
        );
        let own_size = mode.views.iter().map(|(_, view)| asked_percent(view.tokens as f64)).sum::<f64>();
        let _ = writeln!(
            out,
            "{name:<22} {tokens:>7.0} {:>6.1}% {:>5.1}% {:>5.1}% {noted:>5.1}% {noted_first:>6.1}% {needs:>8} {:>7.1}% {:>8.1}% {:>7.1}% {:>7.1}% {:>7.1}% {:>7.1}% {:>7.1}%",
            share(sum(|view| view.answered), sum(|view| view.probes)),
            asked_percent(tokens),
            own_size / mode.views.len().max(1) as f64,
            share(present, needs),
            share(either, needs),
            share(answered, missing),
            share(by_search, missing),
            share(plain, missing),
            share(at_length, missing),
            share(shares, missing),
        );
    }
    out.push_str(
        "tokens, probes: of the messages sent where a session was marked, and the share of the questions that they answer; asked: what a view \n\
         of that mean size has to answer; each: the mean of what each has to answer at its own size. noted: everything that was marked, in notes, where this mode and `off` both have notes; (off): in those of \n\
         `off`. anchors: uses of exact strings that were in the conversation before; in view: of those sent; or recall: or in the first five \n\
         passages of one recall. Of those missing in the view: recall, in the list of names that the view no longer has or in the four passages after it; search, in the first five passages \n\
         of the search; BM25, in five passages of plain BM25; as long, in as much of plain BM25 as the whole recall has; words, where the question has any word of a passage with the string.\n",
    );
    out.push_str(&sizes);
    Ok(out)
}

/// What a mode has of a need of a session.
fn of_mode_at(mode: &ModeMemory, watched: &Watched, at: usize) -> Option<NeedSeen> {
    let (_, seen) = mode.sessions.iter().find(|(one, _)| one.name == watched.name)?;
    seen.get(at).copied()
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
