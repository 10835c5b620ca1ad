// Measures how fast the list of jobs loads and responds in a browser; `cargo run -p bench -- console` runs it.
// node bench/jobs.mjs URL PASSWORD LOADS prints {readyMs, keysMs, longestTaskMs}.

import { existsSync } from "node:fs";
import { chromium } from "@playwright/test";

const [url, password, loads] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(executablePath)) process.exit(3);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** In the page: records when rows and an enabled search field were first painted, and the longest task. */
function measure() {
  globalThis.measured = { readyMs: null, longestTaskMs: 0 };
  new PerformanceObserver((list) => {
    for (const task of list.getEntries())
      measured.longestTaskMs = Math.max(measured.longestTaskMs, task.duration);
  }).observe({ type: "longtask", buffered: true });
  const look = () => {
    const search = document.querySelector("input[data-search]");
    if (document.querySelector("[data-job]") && search && !search.disabled) {
      // Painted, and ready for input.
      requestAnimationFrame(() => setTimeout(() => (measured.readyMs = performance.now())));
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** In the page: time from a key press to the frame with other rows. */
const timeToOtherRows = (first) =>
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

// One login for all loads, because the login is not measured.
const login = await browser.newContext();
const response = await login.request.post(`${url}/api/v1/login`, {
  data: { username: "admin", password },
});
if (!response.ok()) throw new Error(`login failed: ${response.status()}`);
const storageState = await login.storageState();

const readyMs = [];
const keysMs = [];
let longestTaskMs = 0;
for (let load = 0; load < Number(loads); load += 1) {
  // A new context has an empty cache.
  const context = await browser.newContext({
    storageState,
    viewport: { width: 1280, height: 860 },
    locale: "en-GB",
  });
  const page = await context.newPage();
  await page.addInitScript(measure);
  await page.goto(`${url}/r/default/jobs`, { waitUntil: "commit" });
  await page.waitForFunction(() => globalThis.measured?.readyMs != null, null, { timeout: 60_000 });
  const search = page.locator("input[data-search]");
  await search.fill("job-0");
  // One key press changes the rows.
  const first = `job-0${1 + (load % 9)}`;
  await page.waitForFunction(() => location.search.includes("job-0"));
  const rows = page.evaluate(timeToOtherRows, first);
  await search.press(first.at(-1));
  keysMs.push(await rows);
  const measured = await page.evaluate(() => globalThis.measured);
  readyMs.push(measured.readyMs);
  longestTaskMs = Math.max(longestTaskMs, measured.longestTaskMs);
  await context.close();
}
await browser.close();
console.log(JSON.stringify({ readyMs, keysMs, longestTaskMs }));
