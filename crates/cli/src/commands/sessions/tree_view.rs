//! The tree of sessions and the links between them.
//!
//! Continuations are below each other in one column, however many there are. Branches, sub-agents and side calls are in a
//! column of their own to the right of the session they are linked to.

use std::collections::HashSet;
use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_store::{Link, LinkKind, Session, SessionId};

use crate::args::time::Now;
use crate::ui::figures::rounded;
use crate::ui::text::{columns, counted, on_one_line, shorten};

/// Formats the tree. `family` contains all its sessions in the order of opening.
pub(crate) fn render(family: &[Session], asked: &SessionId, now: &Now, width: usize) -> String {
    // Linked sessions may be older than the conversation: a call for a title arrives first.
    let is_trunk = |session: &&Session| kind_of(session).is_none_or(|kind| kind == LinkKind::Continuation);
    let title =
        family.iter().filter(is_trunk).find_map(title_of).or_else(|| family.iter().find_map(title_of));
    let mut out = String::new();
    if let Some(title) = title {
        let _ = writeln!(out, "{}", shorten(&on_one_line(title), width).bold());
    }
    let mut drawing = Drawing { family, asked, title, now, width, drawn: HashSet::new(), out };
    for session in family {
        if drawing.is_root(session) {
            drawing.trunk(session, "", "");
        }
    }
    // Links in a circle have no root; sessions not reached so far are drawn here.
    for session in family {
        if !drawing.drawn.contains(session.id.as_str()) {
            drawing.trunk(session, "", "");
        }
    }
    drawing.out
}

struct Drawing<'a> {
    family: &'a [Session],
    asked: &'a SessionId,
    /// The title of the whole tree; a session with another title shows its own.
    title: Option<&'a str>,
    now: &'a Now,
    width: usize,
    drawn: HashSet<&'a str>,
    out: String,
}

impl<'a> Drawing<'a> {
    /// Whether a session has no parent in the family.
    fn is_root(&self, session: &Session) -> bool {
        match &session.link {
            None => true,
            Some(link) => !self.family.iter().any(|other| other.id == link.parent),
        }
    }

    /// Draws a session, the sessions linked to it, and its continuations. The first line has another prefix than the rest: the fork.
    fn trunk(&mut self, first: &'a Session, fork: &str, prefix: &str) {
        let mut next = Some(first);
        let mut lead = fork;
        while let Some(session) = next.take() {
            if !self.drawn.insert(session.id.as_str()) {
                return;
            }
            let hanging: Vec<&Session> = self
                .family
                .iter()
                .filter(|other| hangs_on(other, session) && !self.drawn.contains(other.id.as_str()))
                .collect();
            let (continued, aside): (Vec<&Session>, Vec<&Session>) =
                hanging.into_iter().partition(|other| kind_of(other) == Some(LinkKind::Continuation));
            let trunk = if continued.is_empty() { ' ' } else { '│' };
            self.session(session, lead, &format!("{prefix}{trunk} "));
            for (at, other) in aside.iter().enumerate() {
                let (fork, rest) = if at + 1 < aside.len() { ("├─", "│ ") } else { ("└─", "  ") };
                self.trunk(other, &format!("{prefix}{trunk} {fork} "), &format!("{prefix}{trunk} {rest} "));
            }
            next = continued.first().copied();
            lead = prefix;
        }
    }

    /// The two lines of a session: its id and link, then its figures.
    fn session(&mut self, session: &Session, lead: &str, rest: &str) {
        let is_asked = session.id == *self.asked;
        let (mark, here) = if is_asked { ("●", "  <- this one") } else { ("○", "") };
        let words = format!("{mark} {}  {}{here}", session.id, link_words(session));
        let words = shorten(&words, self.width.saturating_sub(columns(lead)));
        let words = if is_asked { words.bold().to_string() } else { words };
        let _ = writeln!(self.out, "{lead}{words}");
        let room = self.width.saturating_sub(columns(rest));
        let _ = writeln!(self.out, "{rest}{}", shorten(&self.figures(session), room).dimmed());
    }

    fn figures(&self, session: &Session) -> String {
        let mut words = vec![
            self.now.date_time(session.started_ms),
            counted(session.counters.messages, "message", "messages"),
            format!("{} tokens", rounded(session.counters.message_tokens)),
        ];
        words.push(match (&session.end_reason, session.ended_ms) {
            (Some(reason), _) => format!("ended: {}", on_one_line(reason.as_str())),
            (None, Some(_)) => "ended".to_owned(),
            (None, None) => "open".to_owned(),
        });
        let parent = session.link.as_ref().map(|link| &link.parent);
        words.extend(
            parent
                .filter(|parent| !self.family.iter().any(|other| other.id == **parent))
                .map(|parent| format!("{parent} is gone")),
        );
        words.extend(session.title.as_deref().filter(|title| self.title != Some(*title)).map(on_one_line));
        words.join(", ")
    }
}

fn title_of(session: &Session) -> Option<&str> {
    session.title.as_deref()
}

fn kind_of(session: &Session) -> Option<LinkKind> {
    session.link.as_ref().map(|link| link.kind)
}

fn hangs_on(session: &Session, parent: &Session) -> bool {
    session.link.as_ref().is_some_and(|link| link.parent == parent.id)
}

/// Describes the link of a session to another.
fn link_words(session: &Session) -> String {
    let Some(Link { kind, leaves_at, .. }) = &session.link else { return "root".to_owned() };
    match kind {
        LinkKind::Continuation => "continuation".to_owned(),
        LinkKind::Branch => format!("branch from message {leaves_at}"),
        LinkKind::SubAgent => format!("sub-agent at message {leaves_at}"),
        LinkKind::SideCall => format!("side call at message {leaves_at}"),
        LinkKind::SideBranch => format!("side call from message {leaves_at}"),
        LinkKind::ClientCompaction => format!("its client compacted it at message {leaves_at}"),
    }
}

#[cfg(test)]
#[path = "tree_view_tests.rs"]
mod tests;
