//! The interface to the user who approves writes, commands, and reads outside the folder.

use std::future::Future;
use std::pin::Pin;

use crate::approval::{Answer, Question};

/// The future of an answer.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Asks the user for approval.
pub trait Approver: Send + Sync {
    /// Asks a question. The future is dropped when the turn is cancelled.
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a>;
}

/// Denies everything, for runs without a user.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn ask<'a>(&'a self, _question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(std::future::ready(Answer::Deny))
    }
}
