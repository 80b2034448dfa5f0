//! The redactor: built once, shared between threads, applied to any text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::assignment::{self, Assignment};
use crate::keywords::{KeywordCase, Keywords};
use crate::masked::{Finding, Masked};
use crate::name::SecretName;
use crate::rules::{self, SecretRule};
use crate::scan::{Rank, SecretScan};
use crate::words::WORDS;
use crate::{facts, header, mask, private_key, randomness::Profile, url, value, vicinity};

/// A masked text with its findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction<'t> {
    /// The text; borrowed if nothing was found.
    pub text: Cow<'t, str>,
    /// The findings, with ranges in the original text.
    pub findings: Vec<Finding>,
}

/// Finds secrets in text and masks them.
///
/// Building one takes less than a millisecond, cloning is free; patterns are compiled when a text first needs them. Masking is idempotent,
/// keeps JSON valid (a mask has no quote, backslash or control character and never replaces part of an escape), and borrows the text if
/// there is nothing to mask.
#[derive(Debug, Clone)]
pub struct Redactor {
    engine: Arc<Engine>,
}

/// The detector to try at a keyword.
#[derive(Debug, Clone, Copy)]
enum MaskAttempt {
    /// A rule of the table, by index.
    Format(usize),
    /// A value given by the caller, by keyword.
    Known,
    /// A name that may have a secret assigned.
    Name,
    /// A query parameter that is a secret only in a URL.
    Parameter,
    ForeignWord,
    /// A mask of an earlier pass.
    Mask,
    Url,
    PrivateKey,
    Authorization,
    Bearer,
    Basic,
    Cookie,
}

#[derive(Debug)]
struct Engine {
    keywords: Keywords,
    /// For each keyword: its text and the detectors to try.
    attempts: Vec<(String, Vec<MaskAttempt>)>,
    /// The table, rules with names last.
    rules: Vec<SecretRule>,
    first_named: usize,
}

/// Parts of names that may indicate a secret.
const NAME_KEYWORDS: &[&str] =
    &["key", "token", "secret", "pass", "pwd", "auth", "cred", "_pat", "jwt", "senha", "kennwort"];

/// Parameters that are secrets in a URL and ordinary words elsewhere.
const PARAMETER_KEYWORDS: &[&str] = &["sig=", "signature=", "code=", "key=", "sid=", "session=", "state="];

/// The maximum number of passes over a masked text; the second already finds almost nothing.
const MAX_ROUNDS: usize = 8;

/// The length of the values of named rules.
const NAMED_VALUE_BYTES: std::ops::RangeInclusive<usize> = 20..=1024;

/// Shorter values given by the caller are ignored: they would mask ordinary words.
const MIN_KNOWN_BYTES: usize = 6;

impl Redactor {
    /// Builds a redactor from the table of formats.
    pub fn new() -> Self {
        Self::with_known_secrets(std::iter::empty::<&str>())
    }

    /// Builds a redactor that also masks the given values wherever they occur, such as the keys this process uses.
    /// Values shorter than six bytes are ignored.
    ///
    /// ```
    /// use throughline_redact::Redactor;
    ///
    /// let redactor = Redactor::with_known_secrets(["correct horse battery"]);
    /// assert!(!redactor.redact("It is correct horse battery.").contains("horse"));
    /// ```
    pub fn with_known_secrets<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        Self { engine: Arc::new(Engine::build(secrets)) }
    }

    /// Returns the text with every secret replaced by its mask. Borrowed, without any allocation, if there is none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_with_findings(text).text
    }

    /// Like [`Redactor::redact`], but also returns the findings.
    pub fn redact_with_findings<'t>(&self, text: &'t str) -> Redaction<'t> {
        match self.engine.mask(text) {
            None => Redaction { text: Cow::Borrowed(text), findings: Vec::new() },
            Some(masked) => Redaction { text: Cow::Owned(masked.text), findings: masked.findings },
        }
    }

    /// Every secret in `text`, in order, without overlaps.
    pub fn find(&self, text: &str) -> Vec<Finding> {
        self.engine.mask(text).map_or_else(Vec::new, |masked| masked.findings)
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    fn build<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut rules = rules::load();
        rules.sort_by_key(|rule| !rule.names.is_empty());
        let first_named = rules.partition_point(|rule| rule.names.is_empty());
        let mut attempts: Vec<(String, Vec<MaskAttempt>)> = Vec::new();
        let mut add = |keyword: &str, attempt: MaskAttempt| match attempts
            .iter_mut()
            .find(|(known, _)| known == keyword)
        {
            Some((_, list)) => list.push(attempt),
            None => attempts.push((keyword.to_owned(), vec![attempt])),
        };
        for (index, rule) in rules.iter().enumerate() {
            for word in &rule.words {
                add(word, MaskAttempt::Format(index));
            }
        }
        for (keyword, attempt) in [
            (mask::OPENING, MaskAttempt::Mask),
            ("://", MaskAttempt::Url),
            ("PRIVATE KEY", MaskAttempt::PrivateKey),
            ("authorization", MaskAttempt::Authorization),
            ("bearer", MaskAttempt::Bearer),
            ("basic ", MaskAttempt::Basic),
            ("basic%20", MaskAttempt::Basic),
            ("cookie", MaskAttempt::Cookie),
        ] {
            add(keyword, attempt);
        }
        NAME_KEYWORDS.iter().for_each(|keyword| add(keyword, MaskAttempt::Name));
        PARAMETER_KEYWORDS.iter().for_each(|keyword| add(keyword, MaskAttempt::Parameter));
        WORDS.foreign_words.iter().for_each(|keyword| add(keyword, MaskAttempt::ForeignWord));
        for secret in secrets {
            let secret = secret.as_ref().trim();
            if secret.len() >= MIN_KNOWN_BYTES {
                add(secret, MaskAttempt::Known);
            }
        }
        let keywords =
            Keywords::new(attempts.iter().map(|(keyword, list)| (keyword.as_str(), case_of(list))));
        Self { keywords, attempts, rules, first_named }
    }

    /// Masks `text` until nothing more is found; `None` if nothing was found at all.
    ///
    /// A mask is a token boundary where letters were before, so that something directly next to it may become a match. Repeating until
    /// nothing changes makes masking idempotent. Usually there is one more pass, and only for texts with secrets.
    fn mask(&self, text: &str) -> Option<Masked> {
        let mut masked = Masked::new(text, self.scan(text))?;
        for _ in 0..MAX_ROUNDS {
            let more = self.scan(&masked.text);
            if more.is_empty() {
                break;
            }
            masked = masked.with(text, more);
        }
        Some(masked)
    }

    fn scan(&self, text: &str) -> Vec<Finding> {
        let mut scan = SecretScan::new(text);
        self.keywords.for_each_hit(text.as_bytes(), |index, at| {
            let (keyword, attempts) = &self.attempts[index];
            for attempt in attempts {
                self.attempt(*attempt, &mut scan, keyword, at..at + keyword.len());
            }
        });
        scan.finish()
            .into_iter()
            .map(|found| Finding { range: found.range, kind: found.kind, rule: found.rule })
            .collect()
    }

    fn attempt(&self, attempt: MaskAttempt, scan: &mut SecretScan<'_>, keyword: &str, hit: Range<usize>) {
        match attempt {
            MaskAttempt::Format(rule) => self.attempt_format(&self.rules[rule], scan, keyword, hit.start),
            MaskAttempt::Known => {
                if scan.text.get(hit.clone()) == Some(keyword) {
                    scan.push(hit, "known_secret", "known_secret", Rank::Known);
                }
            }
            MaskAttempt::Name => self.attempt_name(scan, hit),
            MaskAttempt::Parameter => attempt_parameter(scan, hit),
            MaskAttempt::ForeignWord => {
                if scan.text.get(hit.clone()).is_some_and(|word| word.eq_ignore_ascii_case(keyword)) {
                    vicinity::examine_foreign(scan, hit);
                }
            }
            MaskAttempt::Mask => scan.note_mask(hit.start),
            MaskAttempt::Url => url::examine(scan, hit),
            MaskAttempt::PrivateKey => {
                if !scan.is_covered(hit.start, Rank::Block) {
                    private_key::examine(scan, hit);
                }
            }
            MaskAttempt::Authorization => header::examine_authorization(scan, hit),
            MaskAttempt::Bearer => header::examine_bearer(scan, hit),
            MaskAttempt::Basic => header::examine_basic(scan, hit.start..hit.start + "basic".len()),
            MaskAttempt::Cookie => header::examine_cookie(scan, hit),
        }
    }

    fn attempt_format(&self, rule: &SecretRule, scan: &mut SecretScan<'_>, keyword: &str, at: usize) {
        let rank = if rule.needs_random { Rank::LooseFormat } else { Rank::Format };
        if scan.is_covered(at, rank) {
            return;
        }
        let Some(found) = rule.match_at(scan.text, at, keyword) else {
            return;
        };
        let secret = &scan.text[found.secret.clone()];
        let content = secret.get(found.fixed_bytes..).unwrap_or(secret);
        let is_unreal =
            if found.is_beside_name { value::is_stand_in(secret) } else { value::is_filler(content) };
        if is_unreal || (rule.needs_random && !Profile::of(content).looks_random()) {
            return;
        }
        scan.push(found.whole_secret(scan.bytes()), rule.kind, rule.id, rank);
    }

    fn attempt_name(&self, scan: &mut SecretScan<'_>, hit: Range<usize>) {
        let examined_before = scan.last_name_end;
        let Some(found) = assignment::read(scan, hit.clone()) else {
            // Another keyword of the same name is not examined again.
            if scan.last_name_end != examined_before {
                vicinity::examine(scan, hit);
            }
            return;
        };
        let Some(value) = scan.text.get(found.value.clone()) else {
            return;
        };
        if let Some(rule) = self.named_rule(&found, value).filter(|_| !value::is_filler(value)) {
            scan.push(found.value, rule.kind, rule.id, Rank::Format);
        } else if value::is_secret(value, found.announces, found.setting) && !found.repeats_name(value) {
            let (kind, rule) = kind_of(found.announces);
            scan.push(found.value, kind, rule, Rank::Context);
        }
    }
}

impl Engine {
    /// Returns the vendor's rule for an assignment, if both its name and its value match one.
    fn named_rule(&self, found: &Assignment<'_>, value: &str) -> Option<&SecretRule> {
        let is_possible = NAMED_VALUE_BYTES.contains(&value.len()) && found.words.as_slice().len() > 1;
        let mut named = self.rules[self.first_named..].iter().filter(|_| is_possible);
        named.find(|rule| found.words.contains_any(&rule.names) && rule.accepts_value(value))
    }
}

/// Formats, known values and markers are case-sensitive; names and words are not.
fn case_of(attempts: &[MaskAttempt]) -> KeywordCase {
    let is_exact = |attempt: &MaskAttempt| {
        matches!(
            attempt,
            MaskAttempt::Format(_)
                | MaskAttempt::Known
                | MaskAttempt::PrivateKey
                | MaskAttempt::Mask
                | MaskAttempt::Url
        )
    };
    if attempts.iter().all(is_exact) { KeywordCase::Counts } else { KeywordCase::Ignored }
}

/// A parameter whose name means a secret only after `?` or `&`.
fn attempt_parameter(scan: &mut SecretScan<'_>, hit: Range<usize>) {
    let bytes = scan.bytes();
    let name_start = hit.start
        - bytes[..hit.start]
            .iter()
            .rev()
            .take(24)
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            .count();
    let before = name_start.checked_sub(1).map(|at| bytes[at]);
    if !matches!(before, Some(b'?' | b'&' | b';')) {
        return;
    }
    let run = bytes[hit.end..]
        .iter()
        .take(2048)
        .take_while(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b'%' | b'+' | b'/' | b'=')
        })
        .count();
    let range = hit.end..hit.end + run;
    let value = &scan.text[range.clone()];
    let profile = Profile::of(value);
    if profile.len >= 16 && profile.looks_random() && !value.contains("://") && !facts::is_uuid(value) {
        scan.push(range, "url_parameter", "url_parameter", Rank::Context);
    }
}

fn kind_of(announces: SecretName) -> (&'static str, &'static str) {
    match announces {
        SecretName::Password | SecretName::Passphrase => ("password", "named_password"),
        SecretName::Key => ("secret", "named_secret"),
        SecretName::Token => ("token", "named_token"),
        SecretName::Credential | SecretName::OnlyNamed => ("credential", "named_credential"),
    }
}
