// Measures the page in a browser: node tests/bench.mjs URL SESSION [TOKEN]
// Prints milliseconds (median, best and worst of several runs) and frames a second. The same document without the page is beside it.
import { start } from "./browser.mjs";

const [base, session, token] = process.argv.slice(2);
const RUNS = 7;
const browser = await start();

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

async function context() {
  const made = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  if (token) {
    const page = await made.newPage();
    await page.goto(`${base}/ui/`);
    await page.getByLabel("Access token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Now" }).waitFor();
    await page.close();
  }
  return made;
}

/** How long from the start of the navigation until something is in the document. */
async function until(path, selector) {
  const made = await context();
  const page = await made.newPage();
  await page.addInitScript((wanted) => {
    const seen = () => {
      if (!window.seenAt && document.querySelector(wanted)) window.seenAt = performance.now();
    };
    new MutationObserver(seen).observe(document, { childList: true, subtree: true });
  }, selector);
  await page.goto(`${base}${path}`);
  await page.waitForFunction(() => window.seenAt, null, { timeout: 60_000 });
  const took = await page.evaluate(() => window.seenAt);
  await made.close();
  return took;
}

async function timed(name, path, selector) {
  const runs = [];
  for (let n = 0; n < RUNS; n += 1) runs.push(await until(path, selector));
  console.log(`${name.padEnd(44)} ${median(runs).toFixed(0).padStart(6)} ms median ${Math.min(...runs).toFixed(0).padStart(6)} ms best ${Math.max(...runs).toFixed(0).padStart(6)} ms worst of ${RUNS}`);
}

await timed("baseline: an answer of the API by itself", "/healthz", "body");
await timed("first view: conversations", "/ui/conversations", ".listing tbody tr");
await timed("first view: now", "/ui/", ".actives li, .empty");
await timed("conversation, first messages", `/ui/conversations/${session}`, ".message");
await timed("conversation, context over time", `/ui/conversations/${session}`, ".plot svg path");

const made = await context();
const page = await made.newPage();
await page.goto(`${base}/ui/conversations/${session}`);
await page.locator(".virtual .message").first().waitFor();
await page.waitForTimeout(1500);
const scroll = (pixels) =>
  page.evaluate(
    (step) =>
      new Promise((done) => {
        const box = document.querySelector(".virtual");
        const frames = [];
        let last = performance.now();
        const begin = last;
        const frame = (now) => {
          frames.push(now - last);
          last = now;
          box?.scrollBy(0, step);
          if (now - begin < 4000) requestAnimationFrame(frame);
          else done({ frames: frames.slice(1), rows: document.querySelectorAll(".row").length });
        };
        requestAnimationFrame(frame);
      }),
    pixels,
  );
for (const [name, step] of [["scrolling, 60 pixels a frame", 60], ["scrolling, 400 pixels a frame", 400], ["baseline: not scrolling", 0]]) {
  const { frames, rows } = await scroll(step);
  const sum = frames.reduce((all, one) => all + one, 0);
  const sorted = [...frames].sort((a, b) => a - b);
  console.log(
    `${name.padEnd(44)} ${((frames.length / sum) * 1000).toFixed(1).padStart(6)} frames a second, 95 of 100 within ${sorted[Math.floor(sorted.length * 0.95)].toFixed(1)} ms, ${rows} rows in the document`,
  );
}
await browser.close();
