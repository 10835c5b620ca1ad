import type { Page } from "@playwright/test";

import { baseUrl, expect, test } from "./fixtures";

/** Target folder; `npm run screenshots` sets it. */
const FOLDER = process.env.SCREENSHOTS;

const PAGES: [name: string, path: string][] = [
  ["overview", "/r/dev"],
  ["jobs", "/r/dev/jobs"],
  ["job", "/r/dev/jobs/settle"],
  ["configuration", "/r/dev/jobs/greet/config"],
  ["explain", "/r/dev/jobs/settle/explain"],
  ["runs", "/r/dev/runs"],
  ["run", "/r/dev/runs/{run}"],
  ["history", "/r/dev/history"],
  ["traces", "/r/dev/history/traces"],
  ["failures", "/r/dev/history/failures"],
  ["missed", "/r/dev/history/missed"],
  ["servers", "/r/dev/servers/127.0.0.1"],
  ["instances", "/r/dev/instances"],
  ["doctor", "/r/dev/doctor"],
  ["audit", "/audit"],
  ["accounts", "/accounts"],
  ["account", "/account"],
  ["registries", "/registries"],
  ["histories", "/registries/histories"],
  ["help", "/help"],
];
/** Pages that are also captured at phone width. */
const NARROW = ["overview", "jobs", "job", "run", "history", "failures"];

/** Waits for a failed run of flaky and a finished run of settle; returns the id of the latter. */
async function finishedRun(page: Page): Promise<string> {
  const firstRunId = async (query: string) => {
    const response = await page.request.get(`${baseUrl()}/api/v1/r/dev/runs?${query}`);
    return ((await response.json()) as { items: { runId: string }[] }).items[0]?.runId;
  };
  await expect.poll(() => firstRunId("job=flaky&state=failed"), { timeout: 75_000 }).toBeTruthy();
  await expect.poll(() => firstRunId("job=settle&state=done"), { timeout: 75_000 }).toBeTruthy();
  return encodeURIComponent((await firstRunId("job=settle&state=done")) ?? "");
}

for (const language of ["en", "zh"] as const) {
  test(`screenshots of every page: ${language}`, async ({ root }) => {
    test.skip(!FOLDER, "only on request: npm run screenshots");
    test.setTimeout(600_000);
    const run = await finishedRun(root);
    await root.evaluate(
      (language) => localStorage.setItem("elasticjob-language", language),
      language,
    );
    for (const [name, path] of PAGES) {
      await root.goto(baseUrl() + path.replace("{run}", run));
      await expect(root.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(root.getByRole("status")).toHaveCount(0);
      await root.waitForLoadState("load");
      await root.screenshot({ path: `${FOLDER}/${name}.${language}.png`, animations: "disabled" });
    }
    await root.setViewportSize({ width: 390, height: 844 });
    await root.emulateMedia({ colorScheme: "dark" });
    for (const [name, path] of PAGES.filter(([name]) => NARROW.includes(name))) {
      await root.goto(baseUrl() + path.replace("{run}", run));
      await expect(root.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(root.getByRole("status")).toHaveCount(0);
      await root.waitForLoadState("load");
      await root.screenshot({
        path: `${FOLDER}/${name}.narrow.${language}.png`,
        animations: "disabled",
      });
    }
  });
}
