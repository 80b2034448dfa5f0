// The page in a browser, against real gateways: every page, live, compact and undo, search, addresses, narrow, dark, keyboard, hostile
// text, two tenants. What it needs is in the environment; the Rust test that starts the gateways sets it.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, fstatSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "./browser.mjs";
import { payloads } from "./payloads.mjs";

const { OPEN_URL, TOKEN_URL, OPERATOR, TENANT_ONE, TENANT_TWO, IMPORTED, SHOTS, PROGRAM, LOG } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await start();
const problems = [];
let expected = () => false;

function check(what, is) {
  if (!is) problems.push(what);
}

async function open(options = {}) {
  // Checks of accessibility are put into the document, which its policy would refuse; a test below runs under the policy.
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, bypassCSP: true, ...options });
  const page = await context.newPage();
  watch(page);
  return page;
}

function watch(page) {
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !expected(message.text())) problems.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && !origin.startsWith("http://127.0.0.1:")) problems.push(`a request went to ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    problems.push(`a dialog appeared: ${dialog.message()}`);
    void dialog.dismiss();
  });
}

async function accessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  for (const one of violations) {
    if (["serious", "critical"].includes(one.impact)) problems.push(`axe, ${name}: ${one.id}: ${one.nodes[0].html.slice(0, 200)}`);
  }
}

async function fits(page, name) {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  check(`${name} is ${beyond} pixels wider than the window`, beyond <= 0);
}

function freePort() {
  return new Promise((done) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

async function say(url, messages, { model = "worker", token } = {}) {
  const headers = { "content-type": "application/json" };
  if (token) headers["x-throughline-token"] = token;
  const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify({ model, messages }) });
  check(`a request of the scripted client was answered with ${response.status}`, response.ok);
  await response.text();
}

async function read(url, path, token) {
  const response = await fetch(`${url}${path}`, token ? { headers: { "x-throughline-token": token } } : {});
  return { status: response.status, body: await response.json() };
}

if (SHOTS) mkdirSync(SHOTS, { recursive: true });
const words = (turns, name) =>
  Array.from({ length: turns }, (_, n) => [
    { role: "user", content: `${name} ${n}: look at \`src/parser_${n}.rs\` and say what is wrong. ${"More about it. ".repeat(60)}` },
    // As the scripted upstream answers: the client repeats what it was told.
    { role: "assistant", content: "In `src/parser.rs` the end is **off by one**." },
  ]).flat();

// A conversation that grows by calls, so that there is a context over time.
const long = words(14, "turn");
for (let n = 1; n <= 14; n += 1) await say(OPEN_URL, long.slice(0, n * 2 - 1), { model: "claude-sonnet-5" });
const talked = (await read(OPEN_URL, "/api/sessions")).body.sessions[0].tip.id;

// Live: a conversation appears while the page is open, without a reload.
{
  const page = await open();
  await page.goto(`${OPEN_URL}/`);
  check("a browser at / is sent to the page", page.url() === `${OPEN_URL}/ui/`);
  await page.getByText("Live", { exact: true }).waitFor();
  const before = await page.locator(".actives > li").count();
  await page.evaluate(() => (window.sameDocument = true));
  await say(OPEN_URL, [{ role: "user", content: "Something quite new begins here." }]);
  await page.waitForFunction((count) => document.querySelectorAll(".actives > li").length > count, before);
  await page.locator(".log li").first().waitFor();
  check("the page was not loaded again", await page.evaluate(() => window.sameDocument === true));
  await page.context().close();
}

// Compact and undo, from the page.
{
  const page = await open();
  await page.goto(`${OPEN_URL}/ui/conversations/${talked}`);
  await page.locator(".message").first().waitFor();
  await page.getByRole("button", { name: "Compact…" }).click();
  await page.getByRole("button", { name: "Compact", exact: true }).click();
  await page.getByText(/^Compacted from/).waitFor();
  const compacted = decodeURIComponent(page.url().split("/").pop().split("?")[0]);
  check("the address is that of the new window", compacted !== talked);
  await page.goto(`${OPEN_URL}/ui/compactions/${compacted}`);
  await page.getByRole("heading", { name: "Notes", exact: true }).first().waitFor();
  check("items of the view before are listed", (await page.locator(".item.summarised").count()) > 0);
  check("lines of the notes are linked to messages", await page.waitForFunction(() => document.querySelectorAll(".sources a").length > 0).then(() => true, () => false));
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await page.getByRole("heading", { name: "Compaction undone" }).waitFor();
  await page.getByRole("button", { name: "Redo", exact: true }).click();
  await page.getByRole("heading", { name: "Compaction redone" }).waitFor();
  await page.goto(`${OPEN_URL}/ui/try/${compacted}`);
  await page.getByRole("button", { name: "Preview" }).click();
  await page.locator(".attempt").waitFor();
  await page.getByLabel("Engine").selectOption("lcm");
  await page.getByLabel("Threshold in tokens").fill("9000");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("heading", { name: "engine lcm" }).waitFor();
  check("previews stand side by side", (await page.locator(".attempt").count()) === 2);
  check("a preview by another engine is not offered as a compaction", (await page.locator(".attempt").first().getByRole("button", { name: "Compact like this…" }).count()) === 0);
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/attempts-light.png`, fullPage: true });
  const chainNow = (await read(OPEN_URL, `/api/sessions/${compacted}`)).body.chain.length;
  check("previews change nothing", chainNow === 4);
  await page.context().close();
}
const sessions = (await read(OPEN_URL, "/api/sessions")).body.sessions;
const tip = sessions.find((one) => one.compactions > 0)?.tip.id ?? talked;
const chain = (await read(OPEN_URL, `/api/sessions/${tip}`)).body.chain;
const afterCompaction = chain[1]?.id ?? tip;

// Search while typing; addresses; back and forward.
{
  const page = await open();
  await page.goto(`${OPEN_URL}/ui/conversations`);
  await page.locator(".listing tbody tr").first().waitFor();
  await page.getByRole("link", { name: "Search" }).click();
  await page.getByLabel("Words, a question").pressSequentially("parser_7", { delay: 20 });
  await page.locator(".hits li").first().waitFor();
  check("the words are part of the address", page.url().includes("q=parser_7"));
  check("a hit has the name of its conversation", /^turn 0: look at/.test(await page.locator(".hits li a").first().innerText()));
  check("found words are marked", (await page.locator(".hits mark").count()) > 0);
  await page.locator(".hits li a").first().click();
  await page.locator(".entry.meant .message").waitFor();
  check("a hit leads to its message", /at=\d+/.test(page.url()));
  check("the message is in sight", await page.locator(".entry.meant").isVisible());
  const found = page.url();
  await page.goBack();
  await page.locator(".hits li").first().waitFor();
  check("back goes back to the results", page.url().includes("/search?q=parser_7"));
  await page.goForward();
  await page.locator(".entry.meant .message").waitFor();
  check("forward goes forward", page.url() === found);
  await page.goto(`${OPEN_URL}/ui/conversations?program=nothing-of-that-name`);
  await page.getByText("No conversation fits").waitFor();
  await page.context().close();
}

// A conversation without a title is called by its first words; its id is beside the name.
{
  const page = await open();
  await page.goto(`${OPEN_URL}/ui/conversations`);
  await page.getByRole("link", { name: /^turn 0: look at/ }).first().click();
  await page.getByRole("heading", { name: /^turn 0: look at/ }).waitFor();
  check("the id is beside the name", (await page.locator("header.summary").innerText()).includes(new URL(page.url()).pathname.split("/").pop()));
  await page.context().close();
}

// Keyboard only.
{
  const page = await open();
  await page.goto(`${OPEN_URL}/ui/conversations`);
  await page.locator(".listing tbody tr").first().waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("Tab");
  check("the first stop skips to the content", (await page.evaluate(() => document.activeElement?.textContent)) === "Skip to the content");
  await page.locator(".listing tbody a").first().focus();
  await page.keyboard.press("Enter");
  await page.locator(".message").first().waitFor();
  await page.locator(".virtual").focus();
  await page.keyboard.press("End");
  await page.waitForTimeout(300);
  check("End goes to the newest message", await page.evaluate(() => {
    const box = document.querySelector(".virtual");
    return box.scrollTop + box.clientHeight >= box.scrollHeight - 40;
  }));
  const plot = page.locator(".plot").first();
  if ((await plot.count()) > 0) {
    await plot.focus();
    await page.keyboard.press("ArrowLeft");
    await page.locator(".tip").first().waitFor();
  }
  await page.getByRole("button", { name: "Delete…" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.context().close();
}

// Hostile text as messages, names of tools and of models.
const hostile = payloads();
check("there are 200 payloads", hostile.length >= 200);
await say(OPEN_URL, hostile.flatMap((text, n) => [
  { role: "user", content: text },
  { role: "assistant", content: text, tool_calls: [{ id: `c${n}`, type: "function", function: { name: text.slice(0, 60).replaceAll(/[\u0000\ud800-\udfff]/g, "?") || "x", arguments: JSON.stringify({ text }) } }] },
  { role: "tool", tool_call_id: `c${n}`, content: text },
]).concat([{ role: "user", content: "<b>go on</b>" }]), { model: "worker" });
const attacked = (await read(OPEN_URL, "/api/sessions")).body.sessions[0].tip.id;
for (const text of hostile.slice(0, 12)) await say(OPEN_URL, [{ role: "user", content: `model ${text}` }], { model: text.slice(0, 80) || "x" });
for (const bypassCSP of [true, false]) {
  const page = await open({ bypassCSP });
  await page.addInitScript(() => {
    window.attacked = 0;
    for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = () => (window.attacked += 1);
  });
  await page.goto(`${OPEN_URL}/ui/conversations/${attacked}`);
  await page.locator(".message").first().waitFor();
  const total = (await read(OPEN_URL, `/api/sessions/${attacked}`)).body.session.next_seq;
  for (let at = 0; at < total; at += bypassCSP ? 8 : 80) {
    await page.getByLabel("Go to").fill(String(at));
    await page.keyboard.press("Enter");
    await page.locator(".virtual .message").first().waitFor();
    await page.evaluate(() => document.querySelectorAll('.virtual .fold[aria-expanded="false"]').forEach((fold) => fold.click()));
    await fits(page, `message ${at} of the hostile conversation`);
  }
  const strange = await page.evaluate(() => ({
    attacked: window.attacked,
    elements: document.querySelectorAll(".virtual :is(script, iframe, object, embed, form, svg, style, link, base, meta, video, audio)").length,
    links: [...document.querySelectorAll(".virtual a")].filter((one) => !/^https?:/.test(one.href)).length,
    pictures: [...document.images].filter((one) => !one.src.startsWith("data:image/")).length,
  }));
  check(`hostile text did something: ${JSON.stringify(strange)}`, strange.attacked + strange.elements + strange.links + strange.pictures === 0);
  for (const path of ["/ui/conversations", "/ui/", "/ui/money", "/ui/search?q=alert"]) {
    await page.goto(`${OPEN_URL}${path}`);
    await page.locator("h1").waitFor();
    await page.waitForTimeout(400);
    await fits(page, path);
    check(`hostile text did something at ${path}`, (await page.evaluate(() => window.attacked)) === 0);
  }
  await page.context().close();
}

// Two tenants.
const secret = `only-for-one-${Date.now()}`;
const own = [{ role: "user", content: secret }];
const login = async (token, options) => {
  const page = await open(options);
  expected = (text) => text.includes("401");
  await page.goto(`${TOKEN_URL}/ui/conversations`);
  await page.getByLabel("Access token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Conversations" }).waitFor();
  expected = () => false;
  return page;
};
{
  const two = await login(TENANT_TWO);
  await two.goto(`${TOKEN_URL}/ui/`);
  await two.getByText("Live", { exact: true }).waitFor();
  await say(TOKEN_URL, own, { token: TENANT_ONE });
  const one = await login(TENANT_ONE);
  const mine = (await read(TOKEN_URL, "/api/sessions", TENANT_ONE)).body.sessions[0].tip.id;
  await one.goto(`${TOKEN_URL}/ui/conversations/${mine}`);
  await one.getByText(secret).first().waitFor();
  await two.waitForTimeout(1000);
  check("an event of another tenant is not seen", (await two.locator(".log li").count()) === 0 && (await two.locator(".actives li").count()) === 0);
  expected = (text) => text.includes("404");
  for (const path of [`/ui/conversations/${mine}`, `/ui/compactions/${mine}`, `/ui/try/${mine}`]) {
    await two.goto(`${TOKEN_URL}${path}`);
    await two.getByText("is not in the record").first().waitFor();
  }
  expected = () => false;
  for (const path of ["/ui/conversations", `/ui/search?q=${secret}`, "/ui/money", "/ui/settings", "/ui/tokens", "/ui/health"]) {
    await two.goto(`${TOKEN_URL}${path}`);
    await two.locator("h1").waitFor();
    await two.waitForTimeout(400);
    check(`${path} shows another tenant's words`, !(await two.locator("main").innerText()).includes(mine) && (await two.getByText(secret, { exact: true }).count()) === 0);
  }
  check("the cookie cannot be read by scripts", (await two.evaluate(() => document.cookie)) === "");
  await two.getByRole("button", { name: "Log out" }).click();
  expected = (text) => text.includes("401");
  await two.getByLabel("Access token").waitFor();
  await two.goto(`${TOKEN_URL}/ui/conversations`);
  await two.getByLabel("Access token").waitFor();
  expected = () => false;
  await one.context().close();
  await two.context().close();
}

// An operator makes and revokes a token, and changes a setting after seeing the change.
{
  const page = await login(OPERATOR);
  await page.getByRole("link", { name: "Tokens" }).click();
  await page.getByLabel("Name", { exact: true }).fill("made-here");
  await page.getByRole("button", { name: "Create" }).click();
  check("a new token is shown once", /^tl_[0-9a-f]{64}$/.test(await page.locator(".secret").innerText()));
  await page.getByRole("button", { name: "Revoke made-here" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByRole("button", { name: "Revoke made-here" }).waitFor({ state: "detached" });
  await page.goto(`${TOKEN_URL}/ui/settings?filter=compression.threshold&key=compression.threshold`);
  await page.getByLabel("New value of compression.threshold").fill("0.61");
  await page.getByRole("button", { name: "Show the change" }).click();
  await page.locator("dialog .added").first().waitFor();
  await page.getByRole("button", { name: "Write it" }).click();
  await page.locator("tr.set code", { hasText: "0.61" }).waitFor();
  await page.context().close();
}

// An operator looks at the data of another owner; nobody else does.
{
  const refused = await read(TOKEN_URL, "/api/sessions?owner=one", TENANT_TWO);
  check(`another owner's list was answered with ${refused.status}`, refused.status === 403);
  const page = await login(OPERATOR);
  check("an operator's own list has no words of a tenant", (await page.getByText(secret, { exact: true }).count()) === 0);
  await page.getByLabel("Owner").selectOption("one");
  await page.locator(".listing tbody tr a").first().click();
  await page.getByText(secret).first().waitFor();
  check("the owner is part of the address", new URL(page.url()).searchParams.get("owner") === "one");
  await page.getByRole("link", { name: "Money" }).click();
  await page.getByRole("heading", { name: "By access token" }).waitFor();
  await page.getByRole("link", { name: "Now" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  await say(TOKEN_URL, [...own, { role: "assistant", content: "x" }, { role: "user", content: "again" }], { token: TENANT_ONE });
  await page.locator(".log li").first().waitFor();
  await page.context().close();
}

// A token that is revoked while its page is open; a conversation that is deleted while it is open.
{
  const made = await fetch(`${TOKEN_URL}/api/tokens`, { method: "POST", headers: { "x-throughline-token": OPERATOR, "content-type": "application/json" }, body: JSON.stringify({ name: "short-lived" }) });
  const page = await login((await made.json()).token);
  expected = (text) => text.includes("401") || text.includes("ERR_INCOMPLETE_CHUNKED_ENCODING") || text.includes("ERR_EMPTY_RESPONSE");
  await fetch(`${TOKEN_URL}/api/tokens/short-lived`, { method: "DELETE", headers: { "x-throughline-token": OPERATOR } });
  await page.getByText("Your log-in has expired, or the token was revoked.").waitFor();
  check("the address stays", page.url().endsWith("/ui/conversations"));
  await page.context().close();
  expected = (text) => text.includes("404");
  await say(OPEN_URL, [{ role: "user", content: "This conversation is deleted while somebody looks at it." }]);
  const gone = (await read(OPEN_URL, "/api/sessions")).body.sessions[0].tip.id;
  const other = await open();
  await other.goto(`${OPEN_URL}/ui/conversations/${gone}`);
  await other.locator(".message").first().waitFor();
  await fetch(`${OPEN_URL}/api/sessions/${gone}`, { method: "DELETE" });
  await other.getByRole("heading", { name: "The conversation is not in the record" }).waitFor();
  await other.context().close();
  expected = () => false;
}

// A gateway that restarts, and one whose record is damaged.
{
  const home = mkdtempSync(join(tmpdir(), "throughline-page-"));
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const env = { PATH: process.env.PATH, HOME: home, THROUGHLINE_HOME: home, OPENAI_BASE_URL: OPEN_URL };
  const serve = async () => {
    const child = spawn(PROGRAM, ["serve", "--bind", `127.0.0.1:${port}`], { env, stdio: "ignore" });
    for (let n = 0; n < 200; n += 1) {
      if (await fetch(`${address}/healthz`).then((response) => response.ok, () => false)) return child;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error("the gateway did not start");
  };
  const end = (child) => new Promise((done) => child.once("exit", done) && child.kill());
  spawnSync(PROGRAM, ["import", LOG], { env, stdio: "ignore" });
  let child = await serve();
  const page = await open();
  expected = () => true;
  await page.goto(`${address}/ui/`);
  await page.getByText("Live", { exact: true }).waitFor();
  await end(child);
  await page.getByText("The gateway does not answer.").first().waitFor();
  child = await serve();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByText("The gateway does not answer.").first().waitFor({ state: "detached" });
  await page.goto(`${address}/ui/conversations`);
  await page.locator(".listing tbody tr").first().waitFor();
  const file = readdirSync(home, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(home, entry.name))
    .find((name) => readFileSync(name).subarray(0, 6).toString() === "SQLite");
  // Everything behind the first pages, as a failing disk would.
  const handle = openSync(file, "r+");
  const size = fstatSync(handle).size;
  writeSync(handle, Buffer.alloc(size - 4096, 0xa5), 0, size - 4096, 4096);
  closeSync(handle);
  await page.goto(`${address}/ui/health`);
  await page.getByText(/Something is wrong|cannot be examined/).first().waitFor();
  await page.goto(`${address}/ui/search?q=parser`);
  await page.locator(".failure").getByText("throughline doctor").waitFor();
  await end(child);
  expected = () => false;
  await page.context().close();
  rmSync(home, { recursive: true });
}

// Every page: wide, dark and narrow; nothing serious for people who cannot see or point.
const pages = [
  ["now", "/ui/", OPEN_URL, ".actives li"],
  ["conversations", "/ui/conversations", OPEN_URL, ".listing tbody tr"],
  ["conversation", `/ui/conversations/${tip}?at=3`, OPEN_URL, ".message"],
  ["imported", `/ui/conversations/${IMPORTED ?? tip}`, OPEN_URL, ".message"],
  ["compaction", `/ui/compactions/${afterCompaction}`, OPEN_URL, ".item"],
  ["try", `/ui/try/${tip}`, OPEN_URL, "form"],
  ["search", "/ui/search?q=parser", OPEN_URL, ".hits li"],
  ["money", "/ui/money?days=all", OPEN_URL, ".figures"],
  ["health", "/ui/health", OPEN_URL, "section"],
  ["settings", "/ui/settings", OPEN_URL, ".listing tbody tr"],
  ["tokens", "/ui/tokens", TOKEN_URL, ".listing tbody tr"],
  ["missing", "/ui/conversations/of-nobody", OPEN_URL, ".failure"],
];
for (const [mode, options] of [
  ["light", {}],
  ["dark", { colorScheme: "dark", reducedMotion: "reduce" }],
  ["narrow", { viewport: { width: 390, height: 844 } }],
]) {
  const page = await login(OPERATOR, options);
  for (const [name, path, url, wanted] of pages) {
    expected = (text) => name === "missing" && text.includes("404");
    await page.goto(`${url}${path}`);
    await page.locator(wanted).first().waitFor();
    await page.waitForTimeout(500);
    await fits(page, `${name}, ${mode}`);
    await accessible(page, `${name}, ${mode}`);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/${name}-${mode}.png`, fullPage: true });
  }
  expected = () => false;
  await page.context().close();
}

await browser.close();
if (problems.length > 0) {
  console.error([...new Set(problems)].map((one) => `- ${one}`).join("\n"));
  process.exit(1);
}
console.log("every page works");
