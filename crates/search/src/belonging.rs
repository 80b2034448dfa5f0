//! What a message is found by beside its text: its owner, conversation, role and tools, so that a filtered search looks at no more
//! than it has to.

use throughline_transcript::Role;

use crate::fingerprint::{FingerprintKind, FingerprintSet, fingerprint};

/// What a message is found by beside its text.
#[derive(Clone, Copy, Debug)]
pub struct Belonging<'a> {
    /// Whose it is.
    pub owner: &'a str,
    /// Ordinal of the first session of its chain.
    pub chain: u64,
    /// Who speaks.
    pub role: Role,
    /// Tools it calls or answers for.
    pub tools: &'a [String],
}

impl Belonging<'_> {
    /// The fingerprint of an owner.
    pub fn owner_fingerprint(owner: &str) -> u32 {
        fingerprint(FingerprintKind::Owner, owner.as_bytes())
    }

    /// The fingerprint of a chain.
    pub fn chain_fingerprint(chain: u64) -> u32 {
        fingerprint(FingerprintKind::Chain, &chain.to_le_bytes())
    }

    /// The fingerprint of a role.
    pub fn role_fingerprint(role: Role) -> u32 {
        fingerprint(FingerprintKind::Role, role.name().as_bytes())
    }

    /// The fingerprint of a tool, whose case makes no difference.
    pub fn tool_fingerprint(tool: &str) -> u32 {
        fingerprint(FingerprintKind::Tool, tool.to_lowercase().as_bytes())
    }

    /// Adds its fingerprints to those of a text.
    pub fn add_to(&self, set: &mut FingerprintSet) {
        set.add(Self::owner_fingerprint(self.owner));
        set.add(Self::chain_fingerprint(self.chain));
        set.add(Self::role_fingerprint(self.role));
        self.tools.iter().for_each(|tool| set.add(Self::tool_fingerprint(tool)));
    }
}
