// What calls cost, by day, model, project, program and task; what the cache saved.
import { useCallback, useMemo } from "preact/hooks";
import { query } from "../api";
import { Downloads, Plot, Tip } from "../chart";
import { useApi } from "../data";
import { cost, count, dollars, line, percent, rounded } from "../format";
import { useLiveReload } from "../live";
import { go, Link, usePlace, withParams } from "../router";
import { levers, LeverTable, savedBy, useSavings } from "../savings";
import type { SavingsTotal, UsagePage, UsageTotal } from "../types";
import { Empty, Failure, Heading, Loading, Notice, prompt } from "../ui";

const SPANS = [
  { value: "7", name: "7 days" },
  { value: "30", name: "30 days" },
  { value: "90", name: "90 days" },
  { value: "", name: "Everything" },
];
const COST_LAYER = [{ key: "cost", name: "Cost" }];
const TOKEN_LAYERS = [
  { key: "cache_read", name: "Read from cache" },
  { key: "cache_write", name: "Written to cache" },
  { key: "input", name: "Uncached" },
  { key: "output", name: "Output" },
];

function saved(total: UsageTotal): number {
  return total.uncached_micro_usd - total.cost_micro_usd;
}

function Group({ name, rows, filter }: { name: string; rows: UsageTotal[]; filter?: string }) {
  const sorted = [...rows].sort((a, b) => b.cost_micro_usd - a.cost_micro_usd || prompt(b.usage) - prompt(a.usage));
  if (sorted.length === 0) return null;
  const most = Math.max(1, ...sorted.map((row) => row.cost_micro_usd));
  return (
    <section aria-label={`By ${name}`}>
      <h2>By {name}</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label={`Cost by ${name}`}>
        <table class="listing">
          <thead>
            <tr>
              <th>{name[0]?.toUpperCase() + name.slice(1)}</th>
              <th class="num">Calls</th>
              <th class="num">Failed</th>
              <th class="num">Tokens sent</th>
              <th class="num">From cache</th>
              <th class="num">Output</th>
              <th class="num">Saved by the cache</th>
              <th class="num">Cost</th>
              <th aria-hidden="true" />
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, 100).map((row) => (
              <tr key={row.group}>
                <td class="main" data-label={name}>
                  {row.group === "" ? (
                    <span class="soft">none</span>
                  ) : filter ? (
                    <Link to={`/conversations${query({ [filter]: row.group })}`}>{line(row.group, 80)}</Link>
                  ) : (
                    line(row.group, 80)
                  )}
                </td>
                <td class="num" data-label="Calls">
                  {count(row.calls)}
                </td>
                <td class={`num ${row.failed > 0 ? "bad" : ""}`} data-label="Failed">
                  {count(row.failed)}
                </td>
                <td class="num" data-label="Tokens sent">
                  {rounded(prompt(row.usage))}
                </td>
                <td class="num" data-label="From cache">
                  {percent(row.usage.cache_read, prompt(row.usage))}
                </td>
                <td class="num" data-label="Output">
                  {rounded(row.usage.output)}
                </td>
                <td class="num" data-label="Saved by the cache">
                  {saved(row) > 0 ? dollars(saved(row)) : "–"}
                </td>
                <td class="num" data-label="Cost">
                  {cost(row.cost_micro_usd, row.calls, row.unpriced)}
                </td>
                <td class="share" aria-hidden="true">
                  <span class="k-cost" style={{ width: `${(row.cost_micro_usd / most) * 100}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function SavedGroup({ name, rows }: { name: string; rows: SavingsTotal[] }) {
  // Calls without a price say nothing here.
  const sorted = rows.filter((row) => row.direct_micro_usd > 0).sort((a, b) => savedBy(b) - savedBy(a) || b.direct_micro_usd - a.direct_micro_usd);
  if (sorted.length < 2) return null;
  return (
    <div class="scroll apart" tabIndex={0} role="group" aria-label={`Saved by ${name}`}>
      <table class="listing">
        <thead>
          <tr>
            <th>{name[0]?.toUpperCase() + name.slice(1)}</th>
            <th class="num">Directly</th>
            <th class="num">Paid</th>
            <th class="num">Saved</th>
            <th>By</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={row.group}>
              <td class="main" data-label={name}>
                {row.group === "" ? <span class="soft">none</span> : line(row.group, 80)}
              </td>
              <td class="num" data-label="Directly">
                {dollars(row.direct_micro_usd)}
              </td>
              <td class="num" data-label="Paid">
                {dollars(row.paid_micro_usd)}
              </td>
              <td class={`num ${savedBy(row) < 0 ? "bad" : ""}`} data-label="Saved">
                {dollars(savedBy(row))}
              </td>
              <td data-label="By">{levers(row).map((lever) => `${lever.name} ${dollars(lever.micro)}`).join(", ") || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Every day from the first to the last, those without a call too. */
function everyDay(rows: UsageTotal[]): { day: string; total: UsageTotal | null }[] {
  const first = rows[0]?.group;
  const last = rows[rows.length - 1]?.group;
  if (first === undefined || last === undefined) return [];
  const known = new Map(rows.map((row) => [row.group, row]));
  const out: { day: string; total: UsageTotal | null }[] = [];
  const end = Date.parse(`${last}T00:00:00Z`);
  for (let at = Date.parse(`${first}T00:00:00Z`); at <= end && out.length < 3700; at += 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10);
    out.push({ day, total: known.get(day) ?? null });
  }
  return out;
}

export function MoneyPage() {
  const now = usePlace();
  const span = now.params.get("days") ?? "30";
  const days = /^\d{1,4}$/.test(span) ? Number(span) : null;
  const since = useMemo(() => {
    if (days === null || days === 0) return null;
    const midnight = new Date();
    midnight.setHours(0, 0, 0, 0);
    return midnight.getTime() - (days - 1) * 86_400_000;
  }, [days]);
  const path = `/api/usage${query({ since_ms: since, offset_minutes: -new Date().getTimezoneOffset() || null })}`;
  const { data, failure, loading, reload } = useApi<UsagePage>(path);
  useLiveReload(reload, (event) => event.event === "served", 3000);
  const list = useMemo(() => everyDay(data?.by_day ?? []), [data]);
  const price = useCallback((index: number) => (list[index]?.total?.cost_micro_usd ?? 0) / 1e6, [list]);
  const tokens = useCallback((index: number, key: string) => list[index]?.total?.usage[key as "input"] ?? 0, [list]);
  const total = data?.total;
  const { savings, failure: unsaved } = useSavings({ since_ms: since }, String(Math.floor((total?.calls ?? 0) / 10)));
  const rows = () => [
    ["day", "calls", "failed", "cache_read", "cache_write", "uncached", "output", "cost_usd", "uncached_cost_usd", "calls_without_price"],
    ...list.map(({ day, total: one }) => [
      day,
      one?.calls ?? 0,
      one?.failed ?? 0,
      one?.usage.cache_read ?? 0,
      one?.usage.cache_write ?? 0,
      one?.usage.input ?? 0,
      one?.usage.output ?? 0,
      (one?.cost_micro_usd ?? 0) / 1e6,
      (one?.uncached_micro_usd ?? 0) / 1e6,
      one?.unpriced ?? 0,
    ]),
  ];
  return (
    <>
      <div class="top">
        <Heading title="Money">Money</Heading>
        <label class="field inline">
          Time
          <select value={days === null ? "" : String(days)} onChange={(event) => go(withParams(now, { days: event.currentTarget.value === "" ? "all" : event.currentTarget.value }))}>
            {SPANS.map((one) => (
              <option key={one.value} value={one.value}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {failure && data ? <Notice>{failure.message}</Notice> : null}
      {failure && !data ? <Failure failure={failure} what="The cost" retry={reload} /> : null}
      {!data && !failure && loading ? <Loading what="costs" /> : null}
      {data && total ? (
        total.calls === 0 ? (
          <Empty>
            <h2>No calls in this time</h2>
            <p>Calls through the gateway and the chat are priced when they are recorded; imported ones too, where the log names their tokens.</p>
          </Empty>
        ) : (
          <>
            <dl class="figures">
              <div class="figure">
                <dt>Cost</dt>
                <dd>
                  {cost(total.cost_micro_usd, total.calls, total.unpriced)} {total.unpriced > 0 ? <small>{count(total.unpriced)} calls have no price</small> : null}
                </dd>
              </div>
              <div class="figure">
                <dt>Saved by the cache</dt>
                <dd>
                  {saved(total) > 0 ? dollars(saved(total)) : "–"} <small>of {dollars(total.uncached_micro_usd)} without one</small>
                </dd>
              </div>
              <div class="figure">
                <dt>Calls</dt>
                <dd>
                  {count(total.calls)} {total.failed > 0 ? <small>{count(total.failed)} failed</small> : null}
                </dd>
              </div>
              <div class="figure">
                <dt>Tokens sent</dt>
                <dd>
                  {rounded(prompt(total.usage))} <small>{percent(total.usage.cache_read, prompt(total.usage))} from cache</small>
                </dd>
              </div>
              <div class="figure">
                <dt>Output</dt>
                <dd>{rounded(total.usage.output)}</dd>
              </div>
            </dl>
            <section aria-label="Cost by day">
              <div class="bar">
                <h2>Cost by day</h2>
                <Downloads name="cost-by-day" rows={rows} />
              </div>
              <Plot
                name="Cost by day"
                count={list.length}
                layers={COST_LAYER}
                value={price}
                bars
                height={180}
                unit={(value) => `$${value >= 10 ? Math.round(value) : Number(value.toFixed(2))}`}
                ticks={(index) => list[index]?.day ?? ""}
                pickName={() => "the day"}
                onPick={(index) => go(`/conversations?day=${list[index]?.day ?? ""}`)}
                describe={(index) => <Tip title={list[index]?.day ?? ""} rows={[{ key: "cost", name: "Cost", value: dollars(list[index]?.total?.cost_micro_usd ?? 0) }]} />}
              />
            </section>
            <section aria-label="Tokens by day">
              <div class="bar">
                <h2>Tokens by day</h2>
                <Downloads name="tokens-by-day" rows={rows} />
              </div>
              <Plot
                name="Tokens by day, by bucket"
                count={list.length}
                layers={TOKEN_LAYERS}
                value={tokens}
                bars
                height={180}
                unit={rounded}
                ticks={(index) => list[index]?.day ?? ""}
                onPick={(index) => go(`/conversations?day=${list[index]?.day ?? ""}`)}
                describe={(index) => (
                  <Tip title={list[index]?.day ?? ""} rows={TOKEN_LAYERS.map((part) => ({ key: part.key, name: part.name, value: count(list[index]?.total?.usage[part.key as "input"] ?? 0) }))} />
                )}
              />
              <ul class="legend">
                {TOKEN_LAYERS.map((part) => (
                  <li key={part.key}>
                    <i class={`k-${part.key}`} aria-hidden="true" />
                    {part.name}
                  </li>
                ))}
              </ul>
            </section>
            <section aria-label="Saved by Throughline">
              <h2>Saved by Throughline</h2>
              {savings ? (
                <>
                  <LeverTable total={savings.total} />
                  <SavedGroup name="model" rows={savings.by_model} />
                  <SavedGroup name="program" rows={savings.by_program} />
                </>
              ) : unsaved ? (
                <p class="bad">{unsaved.message}</p>
              ) : (
                <Loading what="what was saved" />
              )}
            </section>
            <Group name="model" rows={data.by_model} filter="model" />
            <Group name="project" rows={data.by_project} filter="project" />
            <Group name="program" rows={data.by_program} filter="program" />
            {data.by_access_token.some((row) => row.group !== "") ? <Group name="access token" rows={data.by_access_token} /> : null}
            <Group name="task" rows={data.by_task} />
            <Group name="reason of a cache miss" rows={data.by_cache_miss} />
          </>
        )
      ) : null}
    </>
  );
}
