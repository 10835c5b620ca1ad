// What somebody feels who opens the list of jobs: `cargo run -p bench -- console` runs it.
// node bench/jobs.mjs URL PASSWORD LOADS prints {readyMs, keysMs, longestTaskMs}.

import { existsSync } from "node:fs";
import { chromium } from "@playwright/test";

const [url, password, loads] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(executablePath)) process.exit(3);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** In the page: remembers when rows were first painted with a search that takes text, and for how long nothing could be done. */
function watch() {
  globalThis.felt = { readyMs: null, longestTaskMs: 0 };
  new PerformanceObserver((list) => {
    for (const task of list.getEntries())
      felt.longestTaskMs = Math.max(felt.longestTaskMs, task.duration);
  }).observe({ type: "longtask", buffered: true });
  const look = () => {
    const search = document.querySelector("input[data-search]");
    if (document.querySelector("[data-job]") && search && !search.disabled) {
      // Painted, and free for the next key.
      requestAnimationFrame(() => setTimeout(() => (felt.readyMs = performance.now())));
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** In the page: from the key to the frame that has other rows. */
const otherRows = (first) =>
  new Promise((found) => {
    const search = document.querySelector("input[data-search]");
    search.addEventListener(
      "keydown",
      () => {
        const pressed = performance.now();
        const look = () => {
          const row = document.querySelector("[data-job]")?.getAttribute("data-job");
          if (row?.startsWith(first)) setTimeout(() => found(performance.now() - pressed));
          else requestAnimationFrame(look);
        };
        look();
      },
      { once: true },
    );
  });

// One login for all: a session is not what is measured.
const login = await browser.newContext();
const answer = await login.request.post(`${url}/api/v1/login`, {
  data: { username: "admin", password },
});
if (!answer.ok()) throw new Error(`nobody is logged in: ${answer.status()}`);
const storageState = await login.storageState();

const readyMs = [];
const keysMs = [];
let longestTaskMs = 0;
for (let load = 0; load < Number(loads); load += 1) {
  // Somebody new: nothing is in their cache.
  const context = await browser.newContext({
    storageState,
    viewport: { width: 1280, height: 860 },
    locale: "en-GB",
  });
  const page = await context.newPage();
  await page.addInitScript(watch);
  await page.goto(`${url}/r/default/jobs`, { waitUntil: "commit" });
  await page.waitForFunction(() => globalThis.felt?.readyMs != null, null, { timeout: 60_000 });
  const search = page.locator("input[data-search]");
  await search.fill("job-0");
  // One key: another page of rows.
  const first = `job-0${1 + (load % 9)}`;
  await page.waitForFunction(() => location.search.includes("job-0"));
  const rows = page.evaluate(otherRows, first);
  await search.press(first.at(-1));
  keysMs.push(await rows);
  const felt = await page.evaluate(() => globalThis.felt);
  readyMs.push(felt.readyMs);
  longestTaskMs = Math.max(longestTaskMs, felt.longestTaskMs);
  await context.close();
}
await browser.close();
console.log(JSON.stringify({ readyMs, keysMs, longestTaskMs }));
