// What the API answers, as docs/guide/gateway-api.md and /api/openapi.json describe it.

export type Usage = { input: number; output: number; cache_read: number; cache_write: number; reasoning: number };
export type Counters = {
  messages: number;
  message_tokens: number;
  calls: number;
  usage: Usage;
  cost_micro_usd: number;
  unpriced_calls: number;
};
export type Session = {
  id: string;
  owner: string;
  link: { parent: string; kind: string; leaves_at: number } | null;
  first_seq: number;
  next_seq: number;
  started_ms: number;
  active_ms: number;
  ended_ms: number | null;
  end_reason: string | null;
  model: string | null;
  title: string | null;
  origin: { program: string; key: string | null; project: string | null };
  dialect: string;
  counters: Counters;
};
export type Conversation = {
  tip: Session;
  root: string;
  started_ms: number;
  title: string | null;
  sessions: number;
  compactions: number;
  totals: Counters;
};
/** How conversations without a title begin, by their roots. */
export type FirstWords = Record<string, string>;
export type SessionList = { sessions: Conversation[]; first_words: FirstWords; next: string | null };
export type SessionPage = { session: Session; chain: Session[]; first_words: string | null };
export type Turning = {
  kind: string;
  at_seq: number;
  at_ms: number;
  from: string | null;
  to: string;
  author: string | null;
  messages_before: number | null;
  messages_after: number | null;
  tokens_before: number | null;
  tokens_after: number | null;
};
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
export type Message = {
  seq: number;
  session: string;
  role: string;
  at_ms: number;
  tokens: number;
  tools: string[];
  machine_written: boolean;
  message: JsonObject;
};
export type Transcript = { session: Session; turnings: Turning[]; messages: Message[]; next_seq: number | null };
export type Sent = { system: number; tools: number; summary: number; user: number; assistant: number; tool: number };
export type Call = {
  id: number;
  session: string;
  at_ms: number;
  model: string;
  provider: string;
  task: string;
  usage: Usage;
  usage_kind: string;
  cost_micro_usd: number | null;
  uncached_micro_usd: number | null;
  latency_ms: number | null;
  first_token_ms: number | null;
  error: string | null;
  cache_miss: string | null;
  sent_to_seq: number | null;
  sent: Sent | null;
  cost_by_bucket: { input: number; output: number; cache_read: number; cache_write: number } | null;
};
export type Limits = { window_tokens: number | null; threshold_tokens: number | null };
export type CallsPage = {
  session: Session;
  limits: Limits;
  turnings: Turning[];
  past_limits: (Limits & { at_ms: number })[];
  total_calls: number;
  missed_calls: number;
  /** All, or those that a plot shows. */
  calls: Call[];
};
export type UsageTotal = {
  group: string;
  calls: number;
  failed: number;
  estimated: number;
  usage: Usage;
  cost_micro_usd: number;
  unpriced: number;
  uncached_micro_usd: number;
  latency_ms: number;
  sessions: number;
};
export type UsagePage = {
  total: UsageTotal;
  by_model: UsageTotal[];
  by_task: UsageTotal[];
  by_program: UsageTotal[];
  by_cache_miss: UsageTotal[];
  by_project: UsageTotal[];
  by_access_token: UsageTotal[];
  by_day: UsageTotal[];
};
export type SavingsTotal = {
  group: string;
  calls: number;
  paid_micro_usd: number;
  direct_micro_usd: number;
  tokens_left_out: number;
  estimated: number;
  beyond_window: number;
  unpriced: number;
};
export type Savings = { total: SavingsTotal; by_day: SavingsTotal[]; by_model: SavingsTotal[]; by_program: SavingsTotal[] };
export type Active = {
  conversation: Conversation;
  pressure: { at_ms: number; tokens: number; threshold_tokens: number; window_tokens: number } | null;
  view: Sent;
  recent: UsageTotal;
  total: UsageTotal;
  misses: UsageTotal[];
};
export type NowPage = { now_ms: number; rate_ms: number; conversations: Active[]; first_words: FirstWords };
export type Item = {
  kind: "verbatim" | "rendition" | "summary" | "synthetic";
  session?: string;
  seq?: number;
  renditions?: string[];
  summary?: number;
  synthetic?: string;
  tokens: number;
  message?: JsonObject;
};
export type Run = { session: string; first_seq: number; end_seq: number };
export type Summary = {
  id: number;
  session: string;
  created_ms: number;
  author: string;
  document: string;
  sources: Run[];
  supersedes: number | null;
  facts: Json;
  figures: Json;
};
export type TreeNode = { id: number; created_ms: number; author: string; sources: Run[]; node: JsonObject };
export type CompactionPage = {
  session: Session;
  turning: Turning;
  before: Item[];
  after: Item[];
  summary: Summary | null;
  nodes: TreeNode[];
  input_micro_usd_per_million: number | null;
};
export type StateEntry = { id: string; kind: string; status?: string; text: string; messages: number[] };
export type SummaryPage = { summary: Summary; head: TreeNode | null; children: TreeNode[] };
export type Hit = {
  session: string;
  title: string | null;
  seq: number;
  role: string;
  tools: string[];
  at_ms: number;
  snippet: { text: string; marks: [number, number][]; cut_before: boolean; cut_after: boolean };
  repeats: number;
};
export type SearchAnswer = { hits: Hit[]; ranked_newest: number | null; as_substring: boolean; first_words: FirstWords };
export type Me = {
  owner: string;
  access: "open" | "token";
  sees_gateway: boolean;
  changes_gateway: boolean;
  owners: string[];
  version: string;
  now_ms: number;
};
export type Finding = { severity: string; words: string; meaning: string; remedy: Json };
export type Health = {
  version: string;
  engine: string;
  record: {
    well: boolean;
    error?: string;
    findings?: Finding[];
    sessions?: number;
    messages?: number;
    artifacts?: number;
    database_bytes?: number;
  };
  upstreams: {
    name: string;
    address: string;
    wires: string[];
    models: string[];
    own_key: boolean;
    answered: number;
    failed: number;
    cancelled: number;
    last_error: { message: string; seconds_ago: number } | null;
  }[];
  engines: { name: string; place?: string; version?: string | null; description?: string | null; selected?: boolean; problem: string | null }[];
};
export type Setting = {
  key: string;
  value: Json;
  origin: { kind: string; name: string | null; line: number | null };
  variable: string | null;
  about: string;
};
export type Settings = { file: string; settings: Setting[]; warnings: string[] };
export type SettingResult = {
  file: string;
  key: string;
  changed: boolean;
  applied: boolean;
  removed: string[];
  added: string[];
  current: Setting | null;
  warnings: string[];
};
export type Token = { name: string; owner: string; created_ms: number; operator: boolean; limits: Record<string, number | null> };
export type Payback = {
  before_tokens: number;
  after_tokens: number;
  freed_tokens: number;
  rewritten_tokens: number;
  growth_tokens: number;
  calls: number;
  cost_tokens: number;
  saved_tokens: number;
  pays: boolean;
};
export type CompactResult = {
  outcome: string;
  preview: boolean;
  session: string;
  from?: string;
  quality?: string;
  report?: {
    tokens: { before: number; after: number };
    messages: { before: number; after: number };
    summary_tokens: number;
    facts_important: number;
    facts_kept: number;
    facts_attached: number;
    warnings: string[];
    payback?: Payback | null;
    cost_micro_usd?: number | null;
    saved_per_call_micro_usd?: number | null;
  };
  summary?: string | null;
  reason?: Json;
  detail?: string;
};
