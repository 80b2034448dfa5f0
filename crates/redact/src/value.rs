//! Decides whether the value next to a secret-like name is a secret, or a placeholder, a lookup, a type, a number.
//!
//! Placeholders are not masked: a value that describes itself (`changeme`, `your-api-key`, `password`, `<token>`, `xxxx`) reveals nothing,
//! and a summary that names the placeholder in a file is more useful than a mask.

use crate::facts::{decodes_to_user_and_password, is_plain_fact, is_uuid, is_version_like};
use crate::mask;
use crate::name::SecretName;
use crate::randomness::Profile;
use crate::words::{ByteSet, WORDS, contains, contains_one_of, is_one_of};

/// The context of a value, which decides how much evidence it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Between quotes.
    Quoted,
    /// In quotes, as the argument after a name: `set("password", "...")`, but also any list of words.
    Argument,
    /// `NAME=value` as in an environment file or before a command.
    Environment,
    /// Alone on its line after `name:` or `name =`, as in YAML, INI, headers.
    ConfigLine,
    /// A parameter of a URL or a form body.
    Parameter,
    /// `--name value`.
    Flag,
    /// Anything else without quotes, mostly code.
    Bare,
}

impl Setting {
    /// Whether quotes show that a value is meant, not code.
    fn is_quoted(self) -> bool {
        matches!(self, Self::Quoted | Self::Argument)
    }
}

/// Shorter values are not masked, except in an environment file: they are too likely to be words.
const MIN_VALUE_BYTES: usize = 4;

/// Longer values cannot be words or placeholders; only their randomness is judged, which keeps the time per value constant.
const MAX_WORDED_BYTES: usize = 160;

/// Whether `value` next to a name of kind `name` is a secret.
pub(crate) fn is_secret(value: &str, name: SecretName, setting: Setting) -> bool {
    let is_too_short = value.len() < MIN_VALUE_BYTES && setting != Setting::Environment;
    if name == SecretName::OnlyNamed || value.len() < 3 || is_too_short || mask::starts_with_mask(value) {
        return false;
    }
    if value.len() > MAX_WORDED_BYTES {
        return is_long_secret(value, setting);
    }
    if value.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return setting == Setting::Quoted && is_phrase(value, name);
    }
    if is_placeholder(value) || is_lookup(value, setting) || is_plain_fact(value) {
        return false;
    }
    let profile = Profile::of(value);
    match name {
        SecretName::Password | SecretName::Passphrase => is_password(value, &profile, setting),
        SecretName::Key => is_machine_made(value, &profile, setting),
        SecretName::Token => is_machine_made(value, &profile, setting) && !is_uuid(value),
        SecretName::Credential => {
            (setting.is_quoted() || !looks_like_code(value)) && is_credential(value, &profile)
        }
        SecretName::OnlyNamed => false,
    }
}

/// Whether a text with blanks is a password: plain words if the name says passphrase, or else a few words of which most mix letters with
/// digits. Sentences about passwords are neither.
fn is_phrase(value: &str, name: SecretName) -> bool {
    if is_placeholder(value) || is_lookup(value, Setting::Quoted) || mentions_secret(value) {
        return false;
    }
    let words = value.split_ascii_whitespace().count();
    let is_plain = |word: &str| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_mixed =
        |word: &&str| Profile::of(word).is_mixed() && !is_one_of(word, &WORDS.terms) && !is_plain_fact(word);
    match name {
        SecretName::Passphrase => (4..=12).contains(&words) && value.split_ascii_whitespace().all(is_plain),
        SecretName::Password => {
            words <= 4 && value.split_ascii_whitespace().filter(is_mixed).count() * 2 > words
        }
        _ => false,
    }
}

/// Whether a value too long for a password is a token, rather than code or prose.
fn is_long_secret(value: &str, setting: Setting) -> bool {
    let start = &value[..value.floor_char_boundary(MAX_WORDED_BYTES)];
    let token_like = start
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')' | b'{' | b'}' | b'<'));
    let profile = Profile::of(start);
    token_like
        && profile.looks_random()
        && profile.digits > 0
        && (setting.is_quoted() || !looks_like_code(start))
        && !is_plain_fact(start)
}

/// People choose passwords: short ones and words count in contexts where only a value can be.
fn is_password(value: &str, profile: &Profile, setting: Setting) -> bool {
    let is_assignment = !setting.is_quoted() && value.contains('=') && mentions_secret(value);
    if is_one_of(value, &WORDS.terms) || is_uuid(value) || is_assignment {
        return false;
    }
    let mixed = profile.is_mixed();
    match setting {
        Setting::Quoted | Setting::Argument => {
            let is_selector = mentions_secret(value) && value.starts_with(['[', '#', '.']);
            let is_label = value.ends_with(':') && profile.hard_symbols == 1 && profile.digits == 0;
            if looks_like_pattern(value) || is_qualified_name(value) || is_selector || is_label {
                return false;
            }
            mixed
                || (profile.hard_symbols > 0 && (setting == Setting::Quoted || value.is_ascii()))
                || profile.looks_random()
                || (profile.digits >= 6 && profile.digits == profile.len)
                || (setting == Setting::Quoted
                    && profile.symbols == 0
                    && profile.len >= 6
                    && is_one_case(profile))
        }
        Setting::Environment => {
            let names_another = is_qualified_name(value) && mentions_secret(value);
            !names_another && !value.ends_with(['[', '(', '{']) && !value.starts_with('\\')
        }
        Setting::Parameter => mixed || profile.hard_symbols > 0 || profile.looks_random(),
        Setting::ConfigLine | Setting::Flag => {
            profile.len >= 5
                && !looks_like_code(value)
                && (mixed || profile.looks_random() || (profile.hard_symbols > 0 && !ends_sentence(value)))
                && !is_qualified_name(value)
        }
        Setting::Bare => {
            profile.len >= 8
                && !looks_like_code(value)
                && mixed
                && !profile.reads_like_words()
                && !is_qualified_name(value)
        }
    }
}

/// Keys and tokens are generated: long and without words.
fn is_machine_made(value: &str, profile: &Profile, setting: Setting) -> bool {
    if looks_like_pattern(value) || profile.digits == profile.len || !value.is_ascii() {
        return false;
    }
    if !setting.is_quoted() && looks_like_code(value) {
        return false;
    }
    let mixed = profile.digits > 0 && profile.letters() > 0;
    let short_but_mixed = profile.len >= 8 && mixed && profile.wordlike * 2 < profile.len;
    match setting {
        Setting::Quoted | Setting::Argument | Setting::Environment | Setting::Parameter => {
            profile.len >= 8
                && (profile.looks_random()
                    || short_but_mixed
                    || (profile.digits >= 3
                        && profile.len >= 10
                        && profile.letters() > 0
                        && !is_version_like(value)))
        }
        Setting::ConfigLine | Setting::Flag => {
            profile.len >= 8 && ((profile.looks_random() && profile.len >= 16) || short_but_mixed)
        }
        Setting::Bare => profile.len >= 16 && profile.looks_random() && mixed,
    }
}

/// `auth` and `credentials` may have any value; only `user:password` in base64 or a long random text counts.
fn is_credential(value: &str, profile: &Profile) -> bool {
    decodes_to_user_and_password(value) || (profile.len >= 20 && profile.looks_random() && profile.digits > 0)
}

/// Whether `value` stands in for a real value that was left out.
pub(crate) fn is_placeholder(value: &str) -> bool {
    let bare = value.trim_matches(|c: char| {
        matches!(c, '<' | '>' | '[' | ']' | '{' | '}' | '(' | ')' | '*' | '"' | '\'')
    });
    if bare.is_empty() || is_one_of(bare, &WORDS.stand_ins) || names_a_secret(bare) {
        return true;
    }
    if value.contains("...") || value.contains('…') || (value.starts_with('<') && value.ends_with('>')) {
        return true;
    }
    // A value with letters, digits and signs counts as real unless it clearly describes itself as a placeholder.
    let profile = Profile::of(value);
    let is_strong = profile.digits > 0 && profile.hard_symbols > 0 && profile.letters() > 0;
    let telltales = if is_strong { &WORDS.filler } else { &WORDS.telltales };
    if contains_one_of(value, telltales) && profile.wordlike * 10 >= value.len() {
        return true;
    }
    is_repetition(&Profile::of(bare))
}

/// Whether at least half of it is one repeated character.
fn is_repetition(profile: &Profile) -> bool {
    profile.longest_repeat >= 3 && profile.longest_repeat * 2 >= profile.len
}

/// Whether the random part of a vendor's key was filled in by hand. Stricter than [`is_placeholder`]: a complete match of a format counts
/// as real unless its words say otherwise.
pub(crate) fn is_filler(content: &str) -> bool {
    let profile = Profile::of(content);
    let admits = || contains_one_of(content, &WORDS.filler);
    is_repetition(&profile) || content.contains("xxxxx") || (profile.reads_like_words() && admits())
}

/// Whether `value` is filled in at run time or left out: a lookup, a template, a placeholder.
pub(crate) fn is_stand_in(value: &str) -> bool {
    is_placeholder(value) || is_lookup(value, Setting::Quoted)
}

/// Whether `value`, stripped of separators, is itself the name of a secret (`password`, `API_KEY`, `my-token`).
fn names_a_secret(value: &str) -> bool {
    let words = crate::name::NameWords::split(value);
    let named = words.as_slice();
    // `password1` and `token2` are names too; `secret123` is a typical password.
    let is_number = |word: &str| word.len() == 1 && word.as_bytes()[0].is_ascii_digit();
    !named.is_empty()
        && named.iter().all(|word| is_one_of(word, &WORDS.secret_name_words) || is_number(word))
        && (mentions_secret(value) || contains(value, "pass"))
}

/// Whether the value is looked up rather than written out: a variable, a call, a template, a path through objects.
fn is_lookup(value: &str, setting: Setting) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() < 2 {
        return true;
    }
    match bytes[0] {
        b'$' => {
            let rest = &value[1..];
            if rest.starts_with(['{', '(', '[']) {
                return true;
            }
            let identifier = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
            let profile = Profile::of(&rest[..identifier]);
            return identifier > 0
                && !rest.starts_with(|c: char| c.is_ascii_digit())
                && (profile.lower == 0 || profile.reads_like_words() || !setting.is_quoted());
        }
        b'{' | b'<' | b'(' => return true,
        b'%' => {
            return value.len() < 4
                || value.ends_with('%')
                || bytes[1].is_ascii_lowercase()
                || bytes[1] == b'(';
        }
        b'#' | b'@' => return matches!(bytes[1], b'{' | b'(') || (!setting.is_quoted() && bytes[0] == b'@'),
        b'!' | b'&' | b'*' | b'~' if setting == Setting::ConfigLine || setting == Setting::Bare => {
            return true;
        }
        _ => {}
    }
    const TEMPLATES: [&str; 16] = [
        "{{", "${", "#{", "$(", "{}", "%s", "%v", "%d", "%w", "%q", "%(", "<%", "secrets.", "env.", "getenv",
        "environ",
    ];
    if holds_one_of(value, &TEMPLATES) {
        return true;
    }
    // An f-string or format argument: a name in braces.
    if let (Some(open), Some(close)) = (value.find('{'), value.rfind('}')) {
        let inner = &value[open + 1..close.max(open + 1)];
        if !inner.is_empty()
            && inner.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':'))
        {
            return true;
        }
    }
    !setting.is_quoted() && value.contains('(')
}

/// Whether a value is a regular expression or a glob.
fn looks_like_pattern(value: &str) -> bool {
    const SIGNS: [&str; 15] = [
        ".*", ".+", "\\d", "\\w", "\\S", "\\s", "\\b", "[^", "(?", "[a-z", "[A-Z", "[0-9", "{8,", "{6,", ")$",
    ];
    value.starts_with('^') || holds_one_of(value, &SIGNS)
}

/// Whether one of `signs` occurs in `value`, exactly as written.
fn holds_one_of(value: &str, signs: &[&str]) -> bool {
    let bytes = ByteSet::of(value);
    signs.iter().any(|sign| bytes.has_all_of(sign) && value.contains(sign))
}

/// Whether a value has signs of an expression outside quotes.
fn looks_like_code(value: &str) -> bool {
    value.contains(['(', ')', '[', ']', '{', '}', '<', '>', ';', '|', '`'])
        || value.contains("::")
        || value.contains("->")
        || value.contains("?.")
        || value.contains("==")
        || value.starts_with(['.', '*', '&', '-', '\\'])
}

/// Whether a value is words joined by separators or humps, all of them words: `user.password`, `new-password`, `authTokenProvider`.
fn is_qualified_name(value: &str) -> bool {
    let profile = Profile::of(value);
    let joined = profile.symbols > 0 || (profile.upper > 0 && profile.lower > 0);
    joined && profile.digits == 0 && profile.hard_symbols == 0 && profile.reads_like_words()
}

/// Whether a word for secrets occurs in the value, as in `mypassword` or `secret-name`.
fn mentions_secret(value: &str) -> bool {
    ["password", "passwd", "passphrase", "secret", "token", "key", "credential", "pwd", "auth"]
        .iter()
        .any(|word| contains(value, word))
}

fn is_one_case(profile: &Profile) -> bool {
    profile.upper == 0 || profile.lower == 0
}

fn ends_sentence(value: &str) -> bool {
    value.ends_with(['?', ':', ',', '.', '!'])
}
