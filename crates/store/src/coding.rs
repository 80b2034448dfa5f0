//! The stored encoding of numbers, roles and flags: the same in every database, so that rows can be copied between them.

use throughline_transcript::Role;

/// A number as databases store it: they have no unsigned ones. What does not fit is as large as can be.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of a database that counts something.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Roles by their numbers in the record.
const ROLES: [Role; 6] =
    [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool, Role::Other];

/// The number of a role.
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

/// The role of a number.
pub(crate) fn role_of(code: i64) -> Option<Role> {
    usize::try_from(code).ok().and_then(|code| ROLES.get(code)).copied()
}

/// Set when a message was written by a program in the user's name.
pub(crate) const MACHINE_WRITTEN: i64 = 1;

/// Set when a message in the user's name holds nothing but the results of tools.
pub(crate) const RESULTS_ONLY: i64 = 2;

/// Who really speaks in a message of these flags.
pub(crate) fn speaker_of(role: Role, flags: i64) -> Role {
    if flags & RESULTS_ONLY == 0 { role } else { Role::Tool }
}

/// Kinds of items of a view.
pub(crate) const RANGE: i64 = 0;
/// A message in other words.
pub(crate) const RENDITION: i64 = 1;
/// A summary.
pub(crate) const SUMMARY: i64 = 2;
/// A message of ours.
pub(crate) const SYNTHETIC: i64 = 3;
