// The gateway itself: its health, its settings, its access tokens.
import { useState } from "preact/hooks";
import { api, ApiFailure } from "../api";
import { useApi } from "../data";
import { bytes, count, duration, line, plural, when } from "../format";
import { useLiveReload } from "../live";
import { go, Link, usePlace, withParams } from "../router";
import type { Health, Me, Setting, SettingResult, Settings, Token } from "../types";
import { Confirm, Empty, Failure, Heading, Loading, Notice } from "../ui";

export function NotAllowed({ title }: { title: string }) {
  return (
    <>
      <Heading title={title}>{title}</Heading>
      <Empty>
        <h2>This needs an operator's token</h2>
        <p>
          Your token sees the conversations of its owner. The operator of the gateway makes an operator's token with <code>throughline token new NAME --operator</code>.
        </p>
      </Empty>
    </>
  );
}

export function HealthPage() {
  const { data, failure, loading, reload } = useApi<Health>("/api/health");
  useLiveReload(reload, (event) => event.event === "served" || event.event === "warning", 5000);
  const findings = data?.record.findings ?? [];
  return (
    <>
      <Heading title="Health">Health</Heading>
      {failure && !data ? <Failure failure={failure} what="The state of the gateway" retry={reload} /> : null}
      {!data && !failure && loading ? <Loading what="the state of the gateway" /> : null}
      {data ? (
        <>
          <section aria-label="Record">
            <h2>Record</h2>
            {data.record.error ? (
              <Notice>The record cannot be examined: {line(data.record.error, 400)}</Notice>
            ) : (
              <p>
                {data.record.well ? <strong class="good">No problem was found.</strong> : <strong class="bad">Something is wrong.</strong>} {plural(data.record.sessions ?? 0, "session", "sessions")},{" "}
                {plural(data.record.messages ?? 0, "message", "messages")}, {plural(data.record.artifacts ?? 0, "artifact", "artifacts")}, {bytes(data.record.database_bytes ?? 0)}.
              </p>
            )}
            <ul class="findings">
              {findings.map((finding, n) => (
                <li key={n} class={finding.severity}>
                  <b>{line(finding.severity, 20)}</b> {line(finding.words, 400)}
                  <p class="soft">{line(finding.meaning, 600)}</p>
                  {typeof finding.remedy === "string" ? <p>{line(finding.remedy, 400)}</p> : null}
                </li>
              ))}
            </ul>
            <p class="soft">
              This is the quick examination. <code>throughline doctor</code> reads every message and artifact; <code>throughline doctor --fix</code> mends what can be mended, after a backup.
            </p>
          </section>
          <section aria-label="Upstreams">
            <h2>Upstreams since the start</h2>
            {data.upstreams.length === 0 ? (
              <p class="soft">None.</p>
            ) : (
              <div class="scroll" tabIndex={0} role="group" aria-label="Upstreams">
                <table class="listing">
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th>Address</th>
                      <th>Wire formats</th>
                      <th>Key</th>
                      <th class="num">Answered</th>
                      <th class="num">Failed</th>
                      <th class="num">Cancelled</th>
                      <th>Newest error</th>
                    </tr>
                  </thead>
                  <tbody>
                    {data.upstreams.map((one) => (
                      <tr key={one.name}>
                        <td class="main" data-label="Name">
                          {line(one.name, 40)}
                        </td>
                        <td data-label="Address">{line(one.address, 120)}</td>
                        <td data-label="Wire formats">{one.wires.join(", ")}</td>
                        <td data-label="Key">{one.own_key ? "the gateway's" : "the client's"}</td>
                        <td class="num" data-label="Answered">
                          {count(one.answered)}
                        </td>
                        <td class={`num ${one.failed > 0 ? "bad" : ""}`} data-label="Failed">
                          {count(one.failed)}
                        </td>
                        <td class="num" data-label="Cancelled">
                          {count(one.cancelled)}
                        </td>
                        <td class={one.last_error ? "bad" : ""} data-label="Newest error">
                          {one.last_error ? `${line(one.last_error.message, 300)} (${duration(one.last_error.seconds_ago * 1000)} ago)` : "none"}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </section>
          <section aria-label="Engines">
            <h2>Engines</h2>
            <div class="scroll" tabIndex={0} role="group" aria-label="Engines">
              <table class="listing">
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Place</th>
                    <th>Version</th>
                    <th>State</th>
                  </tr>
                </thead>
                <tbody>
                  {data.engines.map((one) => (
                    <tr key={one.name}>
                      <td class="main" data-label="Name">
                        {line(one.name, 40)}
                      </td>
                      <td data-label="Place">{line(one.place ?? "", 200)}</td>
                      <td data-label="Version">{line(one.version ?? "–", 40)}</td>
                      <td class={one.problem ? "bad" : ""} data-label="State">
                        {one.problem ? line(one.problem, 300) : one.selected ? "in use" : "ready"}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </section>
          <section aria-label="Program">
            <h2>Program</h2>
            <p>
              Throughline {data.version}; engine <code>{data.engine}</code>. <Link to="/settings">Settings</Link>
            </p>
          </section>
        </>
      ) : null}
    </>
  );
}

function shown(setting: Setting): string {
  return setting.value === null ? "" : typeof setting.value === "string" ? setting.value : JSON.stringify(setting.value);
}

/** A text with its parts between backticks as code. */
function withCode(text: string) {
  return text.split("`").map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : part));
}

function origin(setting: Setting): string {
  const { kind, name, line: row } = setting.origin;
  if (kind === "default") return "default";
  return `${name ?? kind}${row === null || row === undefined ? "" : `, line ${row}`}`;
}

function Change({ setting, done }: { setting: Setting; done: () => void }) {
  const [value, setValue] = useState(shown(setting));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [preview, setPreview] = useState<{ value: string | null; result: SettingResult } | null>(null);
  const ask = async (wanted: string | null, dry: boolean) => {
    setBusy(true);
    setProblem(null);
    try {
      const result = await api<SettingResult>("/api/settings", { method: "POST", body: { key: setting.key, value: wanted, preview: dry } });
      if (dry) setPreview({ value: wanted, result });
      else {
        setPreview(null);
        done();
      }
    } catch (error) {
      setPreview(null);
      setProblem(error instanceof ApiFailure ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="change"
      onSubmit={(event) => {
        event.preventDefault();
        void ask(value, true);
      }}
    >
      <label class="field wide">
        New value of {setting.key}
        <input value={value} onInput={(event) => setValue(event.currentTarget.value)} spellcheck={false} />
      </label>
      <button type="submit" disabled={busy}>
        Show the change
      </button>
      {setting.origin.kind === "default" ? null : (
        <button type="button" disabled={busy} onClick={() => void ask(null, true)}>
          Take it out of the file
        </button>
      )}
      {problem ? <Notice>{problem}</Notice> : null}
      {preview ? (
        <Confirm title={`Change ${setting.key}?`} action="Write it" busy={busy} onYes={() => void ask(preview.value, false)} onNo={() => setPreview(null)}>
          {preview.result.changed ? (
            <>
              <p>This changes {preview.result.file}; it applies from the next request on.</p>
              <pre class="code diff">
                {preview.result.removed.map((one, n) => (
                  <span key={`r${n}`} class="removed">
                    -{one}
                    {"\n"}
                  </span>
                ))}
                {preview.result.added.map((one, n) => (
                  <span key={`a${n}`} class="added">
                    +{one}
                    {"\n"}
                  </span>
                ))}
              </pre>
              {preview.result.removed.length + preview.result.added.length === 0 ? <p class="soft">The value is a secret and is not shown.</p> : null}
            </>
          ) : (
            <p>The file says so already.</p>
          )}
        </Confirm>
      ) : null}
    </form>
  );
}

export function SettingsPage({ me }: { me: Me }) {
  const now = usePlace();
  const { data, failure, loading, reload } = useApi<Settings>("/api/settings");
  const wanted = (now.params.get("filter") ?? "").toLowerCase();
  const changed = now.params.get("changed") === "true";
  const open = now.params.get("key");
  const rows = (data?.settings ?? []).filter(
    (setting) => (!changed || setting.origin.kind !== "default") && (wanted === "" || setting.key.includes(wanted) || setting.about.toLowerCase().includes(wanted)),
  );
  return (
    <>
      <Heading title="Settings">Settings</Heading>
      <p class="soft">
        {data ? `From ${data.file}, variables and the command line.` : ""} {me.changes_gateway ? "" : "They are read only here: changes need an operator's token."}
      </p>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label class="field wide">
          Find
          <input type="search" value={wanted} onInput={(event) => go(withParams(now, { filter: event.currentTarget.value }), "replace")} />
        </label>
        <label class="field check">
          <input type="checkbox" checked={changed} onChange={(event) => go(withParams(now, { changed: event.currentTarget.checked ? "true" : null }))} />
          Only those that are not at their default
        </label>
      </form>
      {failure && !data ? <Failure failure={failure} what="The settings" retry={reload} /> : null}
      {!data && !failure && loading ? <Loading what="settings" /> : null}
      {(data?.warnings ?? []).map((warning) => (
        <Notice key={warning}>{line(warning, 400)}</Notice>
      ))}
      {data && rows.length === 0 ? <Empty>No setting fits.</Empty> : null}
      {rows.length > 0 ? (
        <div class="scroll" tabIndex={0} role="group" aria-label="Settings">
          <table class="listing settings">
            <thead>
              <tr>
                <th>Setting</th>
                <th>Value</th>
                <th>Origin</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((setting) => (
                <tr key={setting.key} class={setting.origin.kind === "default" ? "" : "set"}>
                  <td class="main" data-label="Setting">
                    {me.changes_gateway ? (
                      <Link to={withParams(now, { key: open === setting.key ? null : setting.key })}>{setting.key}</Link>
                    ) : (
                      <span>{setting.key}</span>
                    )}
                    <span class="soft">{withCode(line(setting.about, 1500))}</span>
                    {open === setting.key && me.changes_gateway ? <Change key={shown(setting)} setting={setting} done={reload} /> : null}
                  </td>
                  <td data-label="Value">
                    {setting.value === null ? <span class="soft">not set</span> : <code>{line(shown(setting), 200)}</code>}
                  </td>
                  <td data-label="Origin">{line(origin(setting), 120)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </>
  );
}

export function TokensPage() {
  const { data, failure, loading, reload } = useApi<{ tokens: Token[] }>("/api/tokens");
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("");
  const [perMinute, setPerMinute] = useState("");
  const [perDay, setPerDay] = useState("");
  const [operator, setOperator] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [made, setMade] = useState<{ name: string; secret: string } | null>(null);
  const [revoked, setRevoked] = useState<string | null>(null);
  const create = async () => {
    setBusy(true);
    setProblem(null);
    setMade(null);
    try {
      const limits = {
        requests_per_minute: perMinute === "" ? null : Number(perMinute),
        micro_usd_per_day: perDay === "" ? null : Math.round(Number(perDay) * 1e6),
      };
      const answer = await api<{ token: string }>("/api/tokens", { method: "POST", body: { name, owner: owner === "" ? null : owner, limits, operator } });
      setMade({ name, secret: answer.token });
      setName("");
      reload();
    } catch (error) {
      setProblem(error instanceof ApiFailure ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  const revoke = async (gone: string) => {
    setBusy(true);
    setProblem(null);
    try {
      await api(`/api/tokens/${encodeURIComponent(gone)}`, { method: "DELETE" });
      reload();
    } catch (error) {
      setProblem(error instanceof ApiFailure ? error.message : String(error));
    } finally {
      setBusy(false);
      setRevoked(null);
    }
  };
  const limits = (token: Token) => {
    const words = [
      token.limits["requests_per_minute"] ? `${count(token.limits["requests_per_minute"])} requests a minute` : "",
      token.limits["concurrent"] ? `${count(token.limits["concurrent"])} at the same time` : "",
      token.limits["micro_usd_per_day"] ? `$${token.limits["micro_usd_per_day"] / 1e6} a day` : "",
      token.limits["micro_usd_per_month"] ? `$${token.limits["micro_usd_per_month"] / 1e6} in 30 days` : "",
      token.limits["body_bytes"] ? `bodies of ${bytes(token.limits["body_bytes"])}` : "",
    ].filter((one) => one !== "");
    return words.length === 0 ? "none" : words.join(", ");
  };
  return (
    <>
      <Heading title="Tokens">Access tokens</Heading>
      <form
        class="filters"
        aria-label="New token"
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <label class="field">
          Name
          <input value={name} required pattern="[A-Za-z0-9._\-]{1,64}" onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label class="field">
          Owner
          <input value={owner} placeholder="the name" pattern="[A-Za-z0-9._\-]{1,64}" onInput={(event) => setOwner(event.currentTarget.value)} />
        </label>
        <label class="field">
          Requests a minute
          <input value={perMinute} size={8} inputMode="numeric" pattern="[1-9][0-9]{0,8}" placeholder="no limit" onInput={(event) => setPerMinute(event.currentTarget.value)} />
        </label>
        <label class="field">
          Dollars a day
          <input value={perDay} size={8} inputMode="decimal" pattern="[0-9]{1,6}(\.[0-9]{1,6})?" placeholder="no limit" onInput={(event) => setPerDay(event.currentTarget.value)} />
        </label>
        <label class="field check">
          <input type="checkbox" checked={operator} onChange={(event) => setOperator(event.currentTarget.checked)} />
          Operator
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Create
        </button>
      </form>
      {problem ? <Notice>{problem}</Notice> : null}
      {made ? (
        <div class="notice done" role="status">
          <p>The token {made.name}. This is the only time it is shown:</p>
          <p>
            <code class="secret">{made.secret}</code>{" "}
            <button type="button" class="small" onClick={() => void navigator.clipboard?.writeText(made.secret)}>
              Copy
            </button>{" "}
            <button type="button" class="small" onClick={() => setMade(null)}>
              Hide
            </button>
          </p>
        </div>
      ) : null}
      {failure && !data ? <Failure failure={failure} what="The list of tokens" retry={reload} /> : null}
      {!data && !failure && loading ? <Loading what="tokens" /> : null}
      {data ? (
        data.tokens.length === 0 ? (
          <Empty>There are no tokens.</Empty>
        ) : (
          <div class="scroll" tabIndex={0} role="group" aria-label="Tokens">
            <table class="listing">
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Owner</th>
                  <th>Rights</th>
                  <th>Limits</th>
                  <th>Made</th>
                  <th>Action</th>
                </tr>
              </thead>
              <tbody>
                {data.tokens.map((token) => (
                  <tr key={token.name}>
                    <td class="main" data-label="Name">
                      {token.name}
                    </td>
                    <td data-label="Owner">{token.owner}</td>
                    <td data-label="Rights">{token.operator ? "operator" : "its owner's data"}</td>
                    <td data-label="Limits">{limits(token)}</td>
                    <td data-label="Made">{when(token.created_ms)}</td>
                    <td>
                      <button type="button" class="small danger" onClick={() => setRevoked(token.name)} aria-label={`Revoke ${token.name}`}>
                        Revoke…
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )
      ) : null}
      {revoked !== null ? (
        <Confirm title={`Revoke ${revoked}?`} action="Revoke" danger busy={busy} onYes={() => void revoke(revoked)} onNo={() => setRevoked(null)}>
          <p>Requests with it are refused from now on. If it is the last one, every request is refused until there is another.</p>
        </Confirm>
      ) : null}
    </>
  );
}
