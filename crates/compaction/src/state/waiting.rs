//! Requests that wait: said while the agent was working on something else, or several at once. They are open until what the
//! agent does is about them, or until the person takes them back. Both are recognised by words that nothing else contains.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use crate::act::slice_start;
use crate::stems::{Stem, Stemmer, stems};

use super::model::{Fate, Request, State, Via};
use super::prose::{announces, begins_word, is_question, plain_sentences};

/// Statements before a request that may have spoken of its subject.
const STATEMENTS_BEFORE: usize = 12;
/// Of each of them, so much is looked at.
const STATEMENT_BYTES: usize = 2_000;
/// Longer messages do more than to take something back, or to put it off.
const SHORT_CHARS: usize = 260;
/// Fewer words than this say nothing without the turn they belong to.
const LEAST_WORDS: usize = 3;
/// Requests before the end of a turn whose words its work is about.
const REQUESTS_AT_HAND: usize = 8;
/// So many requests that wait are looked at when the agent closes a turn.
const MAX_WAITING: usize = 40;

impl State {
    /// What a request is about that nothing at hand is about: stems of its words.
    pub(super) fn subject_of(&self, words: &str) -> Vec<Stem> {
        let (mut stemmer, mut subject, mut known) = (Stemmer::default(), Vec::new(), Vec::new());
        stemmer.add_to(slice_start(words, STATEMENT_BYTES), &mut subject);
        let open = self.requests.iter().rev().filter(|request| request.fate.is_open()).take(MAX_WAITING);
        let said = self.statements.iter().rev().take(STATEMENTS_BEFORE);
        let before = open.map(|r| r.words.as_str()).chain(said.map(|statement| statement.text.as_str()));
        for text in before {
            if subject.is_empty() {
                break;
            }
            stemmer.take_out(slice_start(text, STATEMENT_BYTES), &mut subject, &mut known);
        }
        subject
    }

    /// Decides the requests that wait when the agent closes a turn: those that its work was about are done.
    pub(super) fn settle_waiting(&mut self, index: u32) {
        let since = std::mem::replace(&mut self.reader.settled_at, index);
        let waiting = self.waiting(|request| request.message < index);
        if waiting.is_empty() {
            return;
        }
        let others = self.requests.iter().enumerate().rev().filter(|(_, request)| request.fate != Fate::Open);
        let mut at_hand: Vec<Subject> = others
            .take(REQUESTS_AT_HAND)
            .map(|(at, request)| Subject {
                at,
                message: request.message,
                put_off: false,
                is_aside: false,
                stems: stems(slice_start(&request.words, STATEMENT_BYTES)),
            })
            .collect();
        // A reminder is about words of its own, not about those of the request it stands in.
        for subject in &mut at_hand {
            for reminder in waiting.iter().filter(|waiting| waiting.message == subject.message) {
                subject.stems.retain(|stem| !reminder.stems.contains(stem));
            }
        }
        let oldest = waiting.iter().map(|subject| subject.message).min().unwrap_or(index);
        let evidence = self.work_since(oldest.max(since));
        // What the agent names is done. Of what was not put off, one word of its own is enough; without one it belongs to the
        // turn.
        let is_of_others = |stem: &Stem| at_hand.iter().any(|other| other.stems.contains(stem));
        let belongs = |subject: &Subject| {
            let mut own = subject.stems.iter().filter(|stem| !is_of_others(stem)).peekable();
            !subject.put_off
                && ((subject.is_aside && subject.stems.len() < LEAST_WORDS)
                    || own.peek().is_none()
                    || own.any(|stem| evidence.contains(stem)))
        };
        let mut done: Vec<usize> = waiting.iter().filter(|s| belongs(s)).map(|s| s.at).collect();
        // Oldest first: of two that are named alike, the newer one is meant.
        done.extend(named_in(waiting.into_iter().rev().chain(at_hand.into_iter().rev()).collect(), evidence));
        for at in done {
            let Some(request) = self.requests.get_mut(at).filter(|request| request.fate == Fate::Open) else {
                continue;
            };
            request.fate = if is_question(&request.words) { Fate::Answered } else { Fate::Done };
            request.decided_by = Some(index);
        }
    }

    /// A request that was put off is asked again where a new one says nothing else.
    pub(super) fn find_repeated(&mut self, index: u32, words: &str) {
        let waiting = self.waiting(|request| request.put_off && request.via != Via::Reminder);
        if waiting.is_empty() {
            return;
        }
        let new = stems(slice_start(words, STATEMENT_BYTES));
        let covers =
            |subject: &Subject| !new.is_empty() && new.iter().all(|stem| subject.stems.contains(stem));
        let repeated: Vec<usize> = waiting.iter().filter(|s| covers(s)).map(|s| s.at).collect();
        for at in repeated {
            if let Some(request) = self.requests.get_mut(at) {
                request.fate = Fate::Superseded;
                request.decided_by = Some(index);
            }
        }
    }

    /// The newest requests that wait, each with what it is about.
    fn waiting(&self, wanted: impl Fn(&Request) -> bool) -> Vec<Subject> {
        let open = self.requests.iter().enumerate().rev();
        let open =
            open.filter(|(_, request)| request.fate == Fate::Open && wanted(request)).take(MAX_WAITING);
        open.map(|(at, request)| {
            // Two that wait may be of the same kind: what sets one apart is seen where both are looked at.
            let stems = match request.via {
                Via::Aside if !request.put_off => request.subject.clone(),
                _ => {
                    let mut all = stems(slice_start(&request.words, STATEMENT_BYTES));
                    all.retain(|stem| !request.put_off || !CUES.contains(stem));
                    all
                }
            };
            let is_aside = request.via == Via::Aside;
            Subject { at, message: request.message, put_off: request.put_off, is_aside, stems }
        })
        .collect()
    }

    /// What the agent did and reported since a message: its paths, its commands, and its words without what it announces.
    fn work_since(&self, from: u32) -> Vec<Stem> {
        let edits = self.edits.iter().rev().take_while(|edit| edit.message > from).map(|e| e.path.as_str());
        let runs = self
            .runs
            .iter()
            .rev()
            .take_while(|run| run.message > from)
            .filter(|run| !run.is_by_person())
            .map(|r| r.command.as_str());
        let said = self.statements.iter().rev().take_while(|statement| statement.message > from);
        let said = said.flat_map(|statement| plain_sentences(slice_start(&statement.text, STATEMENT_BYTES)));
        let said = said.filter(|sentence| !announces(sentence) && !puts_off(sentence));
        let (mut stemmer, mut work) = (Stemmer::default(), Vec::new());
        for text in edits.chain(runs).chain(said) {
            stemmer.add_to(text, &mut work);
            work.push(SENTENCE_END);
        }
        work
    }

    /// Takes back what the person names, or what is at hand where they name nothing. Says whether the words do nothing else.
    pub(super) fn withdraw(&mut self, index: u32, words: &str) -> bool {
        let is_plain = is_withdrawal(words);
        if !is_plain && !takes_something_back(words) {
            return false;
        }
        let waiting = self.requests.iter().enumerate().rev();
        let waiting = waiting.filter(|(_, request)| request.fate == Fate::Open).take(MAX_WAITING);
        let at_hand = self.requests.iter().enumerate();
        let at_hand = at_hand.filter(|(_, request)| is_plain && request.fate == Fate::InProgress);
        // All of what it is about, not only what was new: two requests may be of the same kind.
        let open = waiting.chain(at_hand).map(|(at, request)| Subject {
            at,
            message: request.message,
            put_off: request.put_off,
            is_aside: false,
            stems: stems(&request.words),
        });
        let open: Vec<Subject> = open.collect();
        // Only the words that take something back say what.
        let mut said: Vec<Stem> = Vec::new();
        for sentence in plain_sentences(words).filter(|s| is_plain || sentence_takes_back(s)) {
            said.extend(stems(sentence));
            said.push(SENTENCE_END);
        }
        let named = if open.is_empty() { Vec::new() } else { named_in(open, said) };
        if !named.is_empty() {
            for at in named {
                if let Some(request) = self.requests.get_mut(at) {
                    request.fate = Fate::Withdrawn;
                    request.decided_by = Some(index);
                }
            }
            return plain_sentences(words).count() <= 1;
        }
        if !is_plain {
            return false;
        }
        // What was put off last is meant, if nothing came between.
        let last = self.requests.last().filter(|request| request.fate == Fate::Open);
        match last.map(|request| request.message) {
            Some(last) => self.decide(index, |request| (request.message == last).then_some(Fate::Withdrawn)),
            None => self.decide(index, |request| {
                (request.fate == Fate::InProgress || request.begins_turn()).then_some(Fate::Withdrawn)
            }),
        }
        words.chars().count() < 80
    }
}

/// What a request is about.
#[derive(Clone)]
struct Subject {
    /// Its place among the requests.
    at: usize,
    message: u32,
    put_off: bool,
    /// Whether it was said on the way.
    is_aside: bool,
    stems: Vec<Stem>,
}

/// Stands where a word was taken out of a text. No word has this number.
const NO_STEM: Stem = 0;
/// Stands between two sentences.
const SENTENCE_END: Stem = Stem::MAX;

/// The subjects that a text names: by two of their words in a row, or by half of them. The best named comes first, and the
/// words that name one name no other: `loan form` in `new loan form` says nothing of the old one.
fn named_in(mut subjects: Vec<Subject>, mut text: Vec<Stem>) -> Vec<usize> {
    let mut named = Vec::new();
    loop {
        let best =
            subjects.iter().enumerate().map(|(at, subject)| (strength(&subject.stems, &text), at)).max();
        let Some((_, best)) = best.filter(|(strength, _)| *strength > (0, 0)) else { return named };
        let found = subjects.remove(best);
        named.push(found.at);
        take_out(&mut text, &found.stems);
    }
}

/// Takes a subject out of a text: where two of its words stand in a row, or where no two do, each of them.
fn take_out(text: &mut [Stem], subject: &[Stem]) {
    let pairs: Vec<usize> = (0..text.len().saturating_sub(1))
        .filter(|at| text.get(*at..at + 2).is_some_and(|pair| subject.windows(2).any(|own| own == pair)))
        .collect();
    if pairs.is_empty() {
        text.iter_mut().filter(|word| subject.contains(word)).for_each(|word| *word = NO_STEM);
    }
    for at in pairs {
        text.iter_mut().skip(at).take(2).for_each(|word| *word = NO_STEM);
    }
}

/// How well a text names a subject: the words in a row, and the words in one sentence; nothing where neither is enough.
/// Common words of many sentences together name nothing.
fn strength(subject: &[Stem], text: &[Stem]) -> (usize, usize) {
    let in_sentence = |words: &[Stem]| subject.iter().filter(|stem| words.contains(stem)).count();
    let found = text.split(|word| *word == SENTENCE_END).map(in_sentence).max().unwrap_or(0);
    let mut run = 0;
    for from in 0..subject.len() {
        for to in from + run + 1..=subject.len() {
            let Some(part) = subject.get(from..to) else { break };
            if !text.windows(part.len()).any(|words| words == part) {
                break;
            }
            run = part.len();
        }
    }
    if run >= 2 || (found > 0 && found * 2 >= subject.len()) { (run, found) } else { (0, 0) }
}

/// Words that put something off until the work at hand is done, in several languages.
const PUTTING_OFF: &[&str] = &[
    "later",
    "afterward",
    "after this",
    "after that",
    "after you",
    "when you're done",
    "when you are done",
    "when done",
    "once you",
    "once this",
    "once that",
    "not now",
    "next",
    "then ",
    "your list",
    "the list",
    "backlog",
    "at the end",
    "eventually",
    "some time",
    "finally",
    "später",
    "danach",
    "nachher",
    "anschließend",
    "zum schluss",
    "après",
    "ensuite",
    "plus tard",
    "después",
    "luego",
    "más tarde",
    "depois",
    "mais tarde",
    "dopo",
    "più tardi",
    "потом",
    "позже",
    "затем",
    "之后",
    "以后",
    "稍后",
    "然后",
    "後で",
    "あとで",
    "その後",
    "次に",
    "나중에",
    "다음에",
];

/// The words of [`PUTTING_OFF`]: they are not what a request is about.
static CUES: LazyLock<FxHashSet<Stem>> =
    LazyLock::new(|| PUTTING_OFF.iter().flat_map(|cue| stems(cue)).collect());

/// A text in small letters, with straight apostrophes.
fn in_small_letters(text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.contains('\u{2019}') { lower.replace('\u{2019}', "'") } else { lower }
}

/// Words that ask to be reminded of something, in several languages.
const REMINDERS: &[&str] = &[
    "remind me",
    "remind us",
    "erinnere mich",
    "erinnere uns",
    "erinner mich",
    "rappelle-moi",
    "rappelez-moi",
    "recuérdame",
    "recuérdanos",
    "lembre-me",
    "ricordami",
    "напомни",
    "提醒我",
    "リマインド",
    "상기시켜",
];

/// Whether a sentence asks to be reminded of something: it waits, whatever else its message asks for.
pub(super) fn is_reminder(sentence: &str) -> bool {
    let start = in_small_letters(slice_start(sentence, SHORT_CHARS));
    REMINDERS.iter().any(|cue| begins_word(&start, cue))
}

/// Whether the person puts a request off.
pub(super) fn puts_off(words: &str) -> bool {
    let start = in_small_letters(slice_start(words, SHORT_CHARS));
    PUTTING_OFF.iter().any(|cue| begins_word(&start, cue))
}

/// Words that take a request back where they name it, in several languages.
const TAKING_BACK: &[&str] = &[
    "off the table",
    "take back",
    "taking back",
    "withdraw",
    "no longer",
    "not need",
    "n't need",
    "no need",
    "don't bother",
    "do not bother",
    "never mind",
    "nevermind",
    "as it is",
    "as they are",
    "as is",
    "decided against",
    "changed my mind",
    "after all",
    "hold off",
    "won't be",
    "already did",
    "already done",
    "not necessary",
    "unnecessary",
    "obsolete",
    "leave out",
    "leave it",
    "don't do",
    "do not do",
    "vergiss",
    "lass ",
    "nicht mehr",
    "brauchen wir nicht",
    "streich",
    "erledigt",
    "doch nicht",
    "bleibt",
    "laisse",
    "oublie",
    "annule",
    "plus besoin",
    "pas la peine",
    "olvid",
    "cancela",
    "ya no",
    "déjalo",
    "no hace falta",
    "esquece",
    "não precisa",
    "annulla",
    "lascia",
    "non serve",
    "отмен",
    "не надо",
    "не нужно",
    "забудь",
    "算了",
    "不用",
    "取消",
    "不需要",
    "やめ",
    "不要",
    "キャンセル",
    "취소",
    "필요 없",
];

/// Whether short words take something back.
pub(crate) fn takes_something_back(words: &str) -> bool {
    words.chars().count() <= SHORT_CHARS && plain_sentences(words).any(sentence_takes_back)
}

/// Whether a sentence takes something back. A verb says so only near its beginning: what skips empty rows, or drops a
/// column, is what was asked for.
fn sentence_takes_back(sentence: &str) -> bool {
    if is_question(sentence) {
        return false;
    }
    let lower = in_small_letters(sentence);
    let mut ends = lower.match_indices(char::is_whitespace).map(|(at, _)| at);
    let start = ends.nth(VERB_WORDS - 1).and_then(|end| lower.get(..end)).unwrap_or(&lower);
    VERBS_TAKING_BACK.iter().any(|cue| begins_word(start, cue))
        || TAKING_BACK.iter().any(|cue| begins_word(&lower, cue))
}

/// Verbs that take a request back stand among so many words of their sentence.
const VERB_WORDS: usize = 5;
const VERBS_TAKING_BACK: &[&str] =
    &["scrap", "scratch", "drop", "cancel", "skip", "forget", "cross", "strike", "ignore", "disregard"];

/// Words at the beginning of a short message that take a request back, in several languages.
const WITHDRAWALS: &[&str] = &[
    "never mind",
    "nevermind",
    "forget it",
    "forget that",
    "forget about",
    "scratch that",
    "cancel that",
    "drop that",
    "drop it",
    "don't bother",
    "no need anymore",
    "vergiss",
    "egal",
    "laisse tomber",
    "oublie",
    "olvídalo",
    "olvidalo",
    "déjalo",
    "esquece",
    "не надо",
    "забудь",
    "算了",
    "不用了",
    "やっぱりいい",
    "忘れて",
    "됐어",
];

/// Words that may stand before a withdrawal.
const BEFORE_WITHDRAWALS: &[&str] =
    &["oh ", "ok ", "ok, ", "okay ", "okay, ", "actually ", "actually, ", "no, ", "hm, "];

/// Whether a message takes back what was asked before it.
fn is_withdrawal(words: &str) -> bool {
    let start = slice_start(words.trim(), 120).to_lowercase();
    let mut rest = start.as_str();
    while let Some(after) = BEFORE_WITHDRAWALS.iter().find_map(|opening| rest.strip_prefix(opening)) {
        rest = after;
    }
    WITHDRAWALS.iter().any(|cue| rest.starts_with(cue))
}
