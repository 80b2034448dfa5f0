//! What a conversation is: messages of every dialect in one model, groups, invariants.
