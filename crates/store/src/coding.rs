//! The stored encoding of numbers, roles and flags: the same in every database, so that rows can be copied between them.

use throughline_transcript::Role;

/// Converts a number for databases, which have no unsigned numbers. Larger values become the maximum.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a count from a database.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Roles by their codes in the record.
const ROLES: [Role; 6] =
    [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool, Role::Other];

/// Returns the code of a role.
pub(crate) fn role_code(role: Role) -> i64 {
    match role {
        Role::System => 0,
        Role::Developer => 1,
        Role::User => 2,
        Role::Assistant => 3,
        Role::Tool => 4,
        Role::Other => 5,
    }
}

/// Returns the role for a code.
pub(crate) fn role_of(code: i64) -> Option<Role> {
    usize::try_from(code).ok().and_then(|code| ROLES.get(code)).copied()
}

/// A flag: a program wrote the message with the user's role.
pub(crate) const MACHINE_WRITTEN: i64 = 1;

/// A flag: a message with the user's role consists only of tool results.
pub(crate) const RESULTS_ONLY: i64 = 2;

/// Returns the actual author of a message with these flags.
pub(crate) fn speaker_of(role: Role, flags: i64) -> Role {
    if flags & RESULTS_ONLY == 0 { role } else { Role::Tool }
}

/// The codes of view items: a run of messages.
pub(crate) const RANGE: i64 = 0;
/// A changed message.
pub(crate) const RENDITION: i64 = 1;
/// A summary.
pub(crate) const SUMMARY: i64 = 2;
/// A message inserted by Throughline.
pub(crate) const SYNTHETIC: i64 = 3;
