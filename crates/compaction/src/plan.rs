//! Decides where to cut: head, middle and tail, and the roles at the joints. Pure: values in, a plan out.

use std::ops::Range;

use throughline_transcript::{CutPoints, GroupAtomicity, Groups, LeadingRole, Message, Pairing, Role};

/// The budgets that the planner needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutBudget {
    /// Tokens of the tail.
    pub tail_tokens: u64,
    /// Tokens up to which the last `protect_last_n` messages may extend the tail.
    pub stretched_tokens: u64,
    /// Tokens of the head.
    pub head_tokens: u64,
    /// Number of messages protected at the beginning.
    pub protect_first_n: usize,
    /// Number of messages protected at the end, as far as they fit the extended tail.
    pub protect_last_n: usize,
}

/// The minimum number of messages in the tail, whatever their size.
const MIN_TAIL_MESSAGES: usize = 3;

/// The cuts of a conversation, and how the parts are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Messages that remain at the beginning.
    pub head: Range<usize>,
    /// Messages that the summary covers; includes `pinned` and any earlier summary.
    pub middle: Range<usize>,
    /// Messages that remain at the end, unchanged.
    pub tail: Range<usize>,
    /// The group of the last human message, if it is in the middle: it is repeated unchanged between summary and tail.
    pub pinned: Option<Range<usize>>,
    /// Our earlier summaries and acknowledgements in the middle: updated or dropped, never summarised again.
    pub earlier: Earlier,
    /// The role of the summary. If head and summary are both a user's, a message of ours is inserted between them.
    pub summary_role: Role,
    /// Whether our one-line acknowledgement must follow the summary.
    pub acknowledge: bool,
}

impl Plan {
    /// Returns the new messages of the middle: neither pinned nor our earlier summary.
    pub fn summarised(&self) -> impl Iterator<Item = usize> + '_ {
        self.middle.clone().filter(|index| {
            !self.earlier.contains(*index)
                && !self.pinned.as_ref().is_some_and(|pinned| pinned.contains(index))
        })
    }
}

/// Our earlier messages found in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Summary messages; one, unless another program left several.
    pub summaries: Vec<usize>,
    /// Acknowledgements right after them.
    pub acknowledgements: Vec<usize>,
}

impl Earlier {
    /// Whether a message is one of them.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.summaries.contains(&index) || self.acknowledgements.contains(&index)
    }

    fn first(&self) -> Option<usize> {
        self.summaries.iter().copied().min()
    }

    /// One past the last of them.
    pub(crate) fn end(&self) -> usize {
        self.summaries.iter().chain(&self.acknowledgements).max().map_or(0, |at| at + 1)
    }
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoPlan {
    /// There are no messages.
    Empty,
    /// Everything is head or tail.
    NothingInTheMiddle,
    /// The middle has only the earlier summary.
    NothingNew,
}

/// The input of the planner.
pub(crate) struct PlanInput<'a> {
    /// The conversation.
    pub messages: &'a [Message],
    /// Its groups.
    pub groups: &'a Groups,
    /// Tokens of each message.
    pub sizes: &'a [u64],
    /// Tokens of the first messages as the head would show them: old tool results pruned, the first prompt shortened.
    pub pruned_sizes: &'a [u64],
    /// The earlier summary, if there is one.
    pub earlier: Earlier,
    /// Budgets.
    pub budget: CutBudget,
    /// Where the tail should start, if a summary of everything before it exists; used unless the tail would be longer than the budget
    /// allows.
    pub cut_at: Option<usize>,
}

/// Chooses the cut.
pub(crate) fn plan(input: &PlanInput<'_>) -> Result<Plan, NoPlan> {
    let count = input.messages.len();
    if count == 0 {
        return Err(NoPlan::Empty);
    }
    let cuts = CutPoints::of(input.messages, input.groups, &[&Pairing, &GroupAtomicity]);
    let heads = CutPoints::of(input.messages, input.groups, &[&Pairing, &GroupAtomicity, &LeadingRole]);
    let instructions = input.messages.iter().take_while(|m| m.role().is_instructions()).count();
    let last_human =
        (0..count).rev().find(|at| !input.earlier.contains(*at) && input.messages[*at].is_human());
    let last_human_group = last_human.and_then(|at| input.groups.containing(at)).map(|g| g.start..g.end);

    let mut head_limit = input.budget.protect_first_n.max(instructions).min(count);
    let first_prompt = first_prompt(input.messages, &input.earlier, input.budget.protect_first_n);
    head_limit = head_limit.min(affordable_head(input, instructions, first_prompt).max(instructions));
    head_limit = input.earlier.first().map_or(head_limit, |at| head_limit.min(at));
    head_limit =
        last_human_group.as_ref().map_or(head_limit, |group| head_limit.min(group.start.max(instructions)));

    let mut from_here = vec![0u64; count + 1];
    for at in (0..count).rev() {
        from_here[at] = from_here[at + 1].saturating_add(input.sizes.get(at).copied().unwrap_or(0));
    }
    let least_head = first_prompt
        .map(|at| at + 1)
        .filter(|end| *end <= head_limit && heads.allows(*end))
        .unwrap_or(instructions);
    let search = Search { input, cuts: &cuts, last_human: last_human_group, instructions, from_here };
    let mut head_end = heads.at_or_before(head_limit, instructions).unwrap_or(instructions);
    loop {
        let lowest = search.lowest_tail_start(head_end);
        if let Some(found) = search.given_cut(head_end, lowest) {
            return search.finish(head_end, found);
        }
        let wanted = search.walk_back(lowest);
        if let Some(found) = search.seam(head_end, lowest, wanted) {
            return search.finish(head_end, found);
        }
        // The first prompt remains: a message of ours is inserted between it and the summary.
        if head_end == least_head
            && let Some(found) = search.bridged(head_end, lowest, wanted)
        {
            return search.finish(head_end, found);
        }
        if head_end <= instructions {
            return Err(search.nothing());
        }
        // No cut fits the last role of the head: remove the head's last group.
        head_end = heads.at_or_before(head_end - 1, instructions).unwrap_or(instructions);
    }
}

/// Returns the first human message among those protected at the beginning. It states the subject of the conversation, so the head always
/// includes it, unless it is also the last human message.
pub(crate) fn first_prompt(messages: &[Message], earlier: &Earlier, protect_first_n: usize) -> Option<usize> {
    (0..messages.len().min(protect_first_n))
        .take_while(|at| !earlier.contains(*at))
        .find(|at| messages.get(*at).is_some_and(Message::is_human))
}

/// Returns how many messages fit the head's budget. A very long first prompt is shortened to it, or every later compaction would start with
/// the whole of it.
fn affordable_head(input: &PlanInput<'_>, instructions: usize, first_prompt: Option<usize>) -> usize {
    let mut used = 0u64;
    for (index, size) in input.pruned_sizes.iter().enumerate().skip(instructions) {
        let left = input.budget.head_tokens.saturating_sub(used);
        let size = if first_prompt == Some(index) { (*size).min(left) } else { *size };
        used = used.saturating_add(size);
        if used > input.budget.head_tokens {
            return index;
        }
    }
    usize::MAX
}

struct Search<'a> {
    input: &'a PlanInput<'a>,
    cuts: &'a CutPoints,
    last_human: Option<Range<usize>>,
    instructions: usize,
    /// For each message, the tokens from it to the end.
    from_here: Vec<u64>,
}

/// A cut with its joint.
struct Seam {
    tail_start: usize,
    joint: Joint,
}

/// How a summary is joined with its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joint {
    pub(crate) summary_role: Role,
    pub(crate) acknowledge: bool,
}

/// Returns the joint between a head that ends with `before` (`None`: only instructions precede) and what follows; `None` if the two leave
/// no role for the summary. A summary at the beginning has the user role, as every wire format requires.
pub(crate) fn joint(before: Option<Role>, next: Option<Role>) -> Option<Joint> {
    let fits = |role: Role| next.is_none_or(|next| alternates(role, next));
    let Some(before) = before else {
        return Some(Joint { summary_role: Role::User, acknowledge: !fits(Role::User) });
    };
    [Role::User, Role::Assistant]
        .into_iter()
        .find(|role| alternates(before, *role) && fits(*role))
        .map(|summary_role| Joint { summary_role, acknowledge: false })
}

impl Search<'_> {
    /// Returns the first possible start of the tail, after the head and any earlier summary.
    fn lowest_tail_start(&self, head_end: usize) -> usize {
        head_end.max(self.input.earlier.end())
    }

    /// Goes back from the end until the budget is used, and returns where the tail would start.
    fn walk_back(&self, lowest: usize) -> usize {
        let budget = self.input.budget;
        let ceiling = budget.stretched_tokens.max(budget.tail_tokens);
        let end = self.input.messages.len();
        let mut at = end;
        let mut used = 0u64;
        while at > lowest {
            let kept = end - at;
            let next = used.saturating_add(self.size(at - 1));
            let limit = if kept < budget.protect_last_n { ceiling } else { budget.tail_tokens };
            if kept >= MIN_TAIL_MESSAGES && next > limit {
                break;
            }
            used = next;
            at -= 1;
        }
        at
    }

    /// Returns the given cut, if it leaves a tail within the limits.
    fn given_cut(&self, head_end: usize, lowest: usize) -> Option<Seam> {
        // One step more than the extended tail does not justify another summary.
        let budget = &self.input.budget;
        let ceiling = budget.stretched_tokens.max(budget.tail_tokens.saturating_mul(5) / 4);
        let enough = self.input.messages.len().saturating_sub(MIN_TAIL_MESSAGES);
        let at = self.input.cut_at.filter(|at| (lowest..=enough).contains(at))?;
        if self.tokens(at) > ceiling {
            return None;
        }
        self.join(head_end, at)
    }

    fn size(&self, index: usize) -> u64 {
        self.input.sizes.get(index).copied().unwrap_or(0)
    }

    fn tokens(&self, from: usize) -> u64 {
        self.from_here.get(from).copied().unwrap_or(0)
    }

    /// Returns the cut nearest to `wanted` that can be joined to a head ending at `head_end`.
    fn seam(&self, head_end: usize, lowest: usize, wanted: usize) -> Option<Seam> {
        let end = self.input.messages.len();
        let ceiling = self.input.budget.stretched_tokens.max(self.input.budget.tail_tokens);
        let no_head = head_end <= self.instructions;
        // Backwards first: a slightly longer tail loses nothing. But not beyond the budget, unless the walk itself already had to.
        let allowed = ceiling.max(self.tokens(wanted));
        let mut at = wanted;
        loop {
            if self.tokens(at) > allowed {
                break;
            }
            if let Some(seam) = self.join(head_end, at) {
                return Some(seam);
            }
            if at <= lowest {
                break;
            }
            at -= 1;
        }
        // Forwards: a shorter tail, but not below half the budget while the head can be shortened instead.
        let floor = if no_head { 0 } else { self.input.budget.tail_tokens / 2 };
        let mut at = wanted + 1;
        while at < end && end - at >= MIN_TAIL_MESSAGES.min(end) && self.tokens(at) >= floor {
            if let Some(seam) = self.join(head_end, at) {
                return Some(seam);
            }
            at += 1;
        }
        // The group in which the walk ended is larger than the budget, and too little follows it for a tail: include the whole group.
        let whole_group = self.cuts.at_or_before(wanted, lowest);
        if let Some(seam) = whole_group.and_then(|cut| self.join(head_end, cut)) {
            return Some(seam);
        }
        if !no_head {
            return None;
        }
        // Without a head any legal cut can be joined; the nearest one is used, whatever its size.
        (lowest..wanted).rev().chain(wanted + 1..end).find_map(|at| self.join(head_end, at))
    }

    /// Returns the cut nearest to `wanted` after a head that ends with the first prompt, where the tail starts with an answer.
    fn bridged(&self, head_end: usize, lowest: usize, wanted: usize) -> Option<Seam> {
        if head_end == 0 || self.role(head_end - 1) != Role::User {
            return None;
        }
        let joined = |tail_start: usize| {
            let is_legal = tail_start < self.input.messages.len() && self.cuts.allows(tail_start);
            let pinned = self.last_human.as_ref().is_some_and(|group| group.start < tail_start);
            (is_legal && !pinned && self.role(tail_start) != Role::User)
                .then_some(Seam { tail_start, joint: Joint { summary_role: Role::User, acknowledge: false } })
        };
        let ceiling = self.input.budget.stretched_tokens.max(self.tokens(wanted));
        let backwards = (lowest..=wanted).rev().take_while(|at| self.tokens(*at) <= ceiling).find_map(joined);
        let end = self.input.messages.len().saturating_sub(MIN_TAIL_MESSAGES);
        backwards.or_else(|| (wanted + 1..=end).find_map(joined))
    }

    /// Returns how a cut is joined; `None` if it is not legal or no role fits.
    fn join(&self, head_end: usize, tail_start: usize) -> Option<Seam> {
        let end = self.input.messages.len();
        if tail_start >= end || !self.cuts.allows(tail_start) {
            return None;
        }
        let tail_role = self.role(tail_start);
        let pinned = self.last_human.as_ref().filter(|group| group.start < tail_start);
        if let Some(group) = pinned {
            // The pinned message is a user's (or ends with one), so the next must not be.
            if group.start < head_end || !alternates(self.role(group.end - 1), tail_role) {
                return None;
            }
        }
        let next_role = pinned.map_or(tail_role, |group| self.role(group.start));
        let before = (head_end > self.instructions).then(|| self.role(head_end - 1));
        Some(Seam { tail_start, joint: joint(before, Some(next_role))? })
    }

    fn role(&self, index: usize) -> Role {
        self.input.messages.get(index).map_or(Role::Other, Message::role)
    }

    fn finish(&self, head_end: usize, seam: Seam) -> Result<Plan, NoPlan> {
        let middle = head_end..seam.tail_start;
        let pinned = self.last_human.clone().filter(|group| group.start < seam.tail_start);
        let plan = Plan {
            head: 0..head_end,
            tail: seam.tail_start..self.input.messages.len(),
            pinned,
            earlier: self.input.earlier.clone(),
            middle,
            summary_role: seam.joint.summary_role,
            acknowledge: seam.joint.acknowledge,
        };
        if plan.summarised().next().is_some() {
            return Ok(plan);
        }
        Err(self.nothing())
    }

    /// Returns the reason why there is nothing to compact.
    fn nothing(&self) -> NoPlan {
        let first_time = self.input.earlier.summaries.is_empty();
        if first_time { NoPlan::NothingInTheMiddle } else { NoPlan::NothingNew }
    }
}

/// Whether two neighbours have alternating sides. Tool results (OpenAI) follow calls and precede anything.
fn alternates(first: Role, second: Role) -> bool {
    let side = |role: Role| match role {
        Role::User => 1,
        Role::Assistant => 2,
        Role::System | Role::Developer | Role::Tool | Role::Other => 0,
    };
    side(first) == 0 || side(first) != side(second)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
