// The page: who is signed in, which page is shown, and whether the gateway answers.
import { Component, type ComponentChildren, render } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api, ApiFailure, onSignedOut, preload } from "./api";
import { live, useLiveState } from "./live";
import { ownerMeant } from "./owner";
import { CompactionView, TryPage } from "./pages/compaction";
import { callsPath, ConversationPage } from "./pages/conversation";
import { Conversations, listPath } from "./pages/conversations";
import { HealthPage, NotAllowed, SettingsPage, TokensPage } from "./pages/gateway";
import { MoneyPage } from "./pages/money";
import { Now } from "./pages/now";
import { Search } from "./pages/search";
import { go, Link, place, usePlace } from "./router";
import type { Me } from "./types";
import { Empty, Failure, Heading, Loading, Notice } from "./ui";

/** One page that fails leaves the others. */
class Guard extends Component<{ children: ComponentChildren }, { failed: string | null }> {
  override state: { failed: string | null } = { failed: null };
  override componentDidCatch(error: unknown): void {
    this.setState({ failed: error instanceof Error ? error.message : String(error) });
  }
  override render() {
    if (this.state.failed === null) return <>{this.props.children}</>;
    return (
      <div class="state failure" role="alert">
        <h2>This page failed</h2>
        <p>{this.state.failed}</p>
        <button type="button" onClick={() => this.setState({ failed: null })}>
          Show it again
        </button>
      </div>
    );
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function Page({ me }: { me: Me }) {
  const { path } = usePlace();
  const [, first = "", second = ""] = path.split("/");
  const named = decoded(second);
  switch (first) {
    case "":
    case "now":
      return <Now />;
    case "conversations":
      return second === "" ? <Conversations /> : <ConversationPage key={named} id={named} />;
    case "compactions":
      return <CompactionView key={named} id={named} />;
    case "try":
      return <TryPage key={named} id={named} />;
    case "search":
      return <Search />;
    case "money":
      return <MoneyPage />;
    case "health":
      return me.sees_gateway ? <HealthPage /> : <NotAllowed title="Health" />;
    case "settings":
      return me.sees_gateway ? <SettingsPage me={me} /> : <NotAllowed title="Settings" />;
    case "tokens":
      return me.changes_gateway ? <TokensPage /> : <NotAllowed title="Access tokens" />;
    default:
      return (
        <>
          <Heading title="No such page">No such page</Heading>
          <Empty>
            <p>
              The address names no page. <Link to="/conversations">All conversations</Link>
            </p>
          </Empty>
        </>
      );
  }
}

const PAGES = [
  { to: "/now", name: "Now" },
  { to: "/conversations", name: "Conversations" },
  { to: "/search", name: "Search" },
  { to: "/money", name: "Money" },
];
const GATEWAY_PAGES = [
  { to: "/health", name: "Health" },
  { to: "/settings", name: "Settings" },
];

function Frame({ me, signOut }: { me: Me; signOut: () => void }) {
  const { path } = usePlace();
  const state = useLiveState();
  const [late, setLate] = useState(false);
  const liveOwner = useRef(ownerMeant() || me.owner);
  useEffect(() => {
    // A short break is not shown.
    const timer = setTimeout(() => setLate(state === "lost"), state === "lost" ? 1500 : 0);
    return () => clearTimeout(timer);
  }, [state]);
  const owner = ownerMeant() || me.owner;
  useEffect(() => {
    if (owner !== liveOwner.current) live.restart();
    liveOwner.current = owner;
  }, [owner]);
  const changeOwner = (chosen: string) => {
    // What belongs to one owner is unknown to another.
    const to = /^\/(conversations|compactions|try)\/./.test(path) ? "/conversations" : path;
    go(`${to}?owner=${encodeURIComponent(chosen)}`);
  };
  const isAt = (to: string) => path === to || path.startsWith(`${to}/`) || (to === "/now" && path === "/") || (to === "/conversations" && /^\/(compactions|try)\//.test(path));
  const pages = [...PAGES, ...(me.sees_gateway ? GATEWAY_PAGES : []), ...(me.changes_gateway ? [{ to: "/tokens", name: "Tokens" }] : [])];
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="frame">
        <Link to="/now" class="name">
          Throughline
        </Link>
        <nav aria-label="Pages">
          {pages.map((one) => (
            <Link key={one.to} to={one.to} current={isAt(one.to)}>
              {one.name}
            </Link>
          ))}
        </nav>
        {me.access === "token" ? (
          <span class="account">
            {me.owners.length > 1 ? (
              <label class="field inline">
                Owner
                <select value={owner} onChange={(event) => changeOwner(event.currentTarget.value)}>
                  {[...new Set([...me.owners, owner])].sort().map((one) => (
                    <option key={one} value={one}>
                      {one}
                    </option>
                  ))}
                </select>
              </label>
            ) : (
              <span class="soft">{me.owner}</span>
            )}
            <button type="button" class="small" onClick={signOut}>
              Log out
            </button>
          </span>
        ) : null}
      </header>
      <main id="main" tabIndex={-1}>
        {late ? <Notice>The gateway does not answer. This page reconnects by itself; what is shown may be out of date.</Notice> : null}
        <Guard key={`${owner} ${path}`}>
          <Page me={me} />
        </Guard>
      </main>
    </>
  );
}

function Login({ again, problem, signIn }: { again: boolean; problem: string | null; signIn: (token: string) => void }) {
  const [token, setToken] = useState("");
  return (
    <main id="main" class="login">
      <Heading title="Log in">Throughline</Heading>
      <p>{again ? "Your log-in has expired, or the token was revoked. " : ""}This gateway asks for an access token.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          signIn(token.trim());
        }}
      >
        <label class="field wide">
          Access token
          <input type="password" value={token} required autocomplete="off" spellcheck={false} placeholder="tl_…" onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          Log in
        </button>
      </form>
      {problem ? <Notice>{problem}</Notice> : null}
      <p class="soft">
        <code>throughline token new NAME</code> makes one. The page keeps it in a cookie that scripts cannot read.
      </p>
    </main>
  );
}

function App() {
  const [me, setMe] = useState<Me | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [wanted, setWanted] = useState<"no" | "first" | "again">("no");
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback(async () => {
    try {
      setMe(await api<Me>("/api/me"));
      setFailure(null);
      setWanted("no");
      live.start();
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      if (error.status === 401) setWanted((old) => (old === "no" ? "first" : old));
      else setFailure(error);
    }
  }, []);
  const signIn = useCallback(
    async (token: string) => {
      setProblem(null);
      try {
        await api("/api/login", { method: "POST", token });
        await load();
      } catch (error) {
        if (error instanceof ApiFailure) setProblem(error.status === 401 ? "The gateway does not know this token." : error.message);
      }
    },
    [load],
  );
  useLayoutEffect(() => {
    const code = /^login=(tl_[0-9a-f]{64})$/.exec(place().hash)?.[1];
    if (code === undefined) void load();
    else {
      // The code counts once; it does not stay in the address.
      window.history.replaceState(null, "", window.location.pathname + window.location.search);
      void signIn(code).then(load);
    }
  }, [load, signIn]);
  useEffect(
    () =>
      onSignedOut(() => {
        live.stop();
        setMe((old) => {
          setWanted(old === null ? "first" : "again");
          return null;
        });
      }),
    [],
  );
  useEffect(() => {
    if (failure === null || me !== null) return;
    const timer = setTimeout(() => void load(), 2000);
    return () => clearTimeout(timer);
  }, [failure, me, load]);
  const signOut = async () => {
    live.stop();
    try {
      await api("/api/logout", { method: "POST" });
    } finally {
      setMe(null);
      setWanted("first");
      go("/now", "replace");
    }
  };
  if (wanted !== "no") return <Login again={wanted === "again"} problem={problem} signIn={(token) => void signIn(token)} />;
  if (me) return <Frame me={me} signOut={() => void signOut()} />;
  return <main id="main">{failure ? <Failure failure={failure} what="The page" retry={() => void load()} /> : <Loading what="the page" />}</main>;
}

function preloadFirst(): void {
  const now = place();
  if (now.hash.startsWith("login=")) return;
  const [, first = "", second = ""] = now.path.split("/");
  preload("/api/me");
  if (first === "" || first === "now") preload(`/api/now?minutes=${encodeURIComponent(now.params.get("minutes") ?? "30")}`);
  if (first === "conversations" && second === "") preload(listPath(now.params));
  if (first === "conversations" && second !== "") {
    const session = `/api/sessions/${encodeURIComponent(decoded(second))}`;
    preload(session, callsPath(session));
    if (!now.params.has("at")) preload(`${session}/transcript?limit=100&messages_only=true`);
  }
}

preloadFirst();
const root = document.getElementById("app");
if (root) render(<App />, root);
