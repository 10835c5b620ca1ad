import { readFileSync } from "node:fs";
import type { Download, Page, Request } from "@playwright/test";

import { startBareConsole } from "./consoleProcess";
import {
  baseUrl,
  callApi,
  expect,
  expectNotification,
  goByKey,
  submitLogin,
  test,
} from "./fixtures";

/** flaky fails twice a minute; this is enough for one failure to be recorded. */
const FAILURE_TIMEOUT = { timeout: 75_000 };

test.describe.configure({ timeout: 150_000 });

async function filterByJob(page: Page, job: string) {
  await page.getByRole("combobox", { name: "Job" }).fill(job);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`job=${job}`));
}

async function readDownload(download: Download): Promise<string> {
  return readFileSync((await download.path()) ?? "", "utf8");
}

test("executions are filtered by job and outcome and show their failure", async ({ root }) => {
  await expect(root.getByRole("heading", { name: "Overview" })).toBeVisible();
  await goByKey(root, "y", "History");
  const rows = root.locator("[data-execution]");
  await expect(rows.first()).toBeVisible(FAILURE_TIMEOUT);

  await filterByJob(root, "flaky");
  await expect(rows.and(root.locator('[data-job="flaky"]')).first()).toBeVisible(FAILURE_TIMEOUT);
  await expect(rows.and(root.locator(':not([data-job="flaky"])'))).toHaveCount(0);

  await root.getByRole("combobox", { name: "Outcome" }).click();
  await root.getByRole("option", { name: "not succeeded", exact: true }).click();
  const failed = rows.filter({ hasText: "the other side hung up" }).first();
  await expect(failed).toBeVisible(FAILURE_TIMEOUT);
  await failed.getByRole("button", { name: "Details" }).click();
  await expect(root.getByText("Fencing token")).toBeVisible();

  // The URL restores the filters.
  await root.reload();
  await expect(root.getByRole("combobox", { name: "Job" })).toHaveValue("flaky");
  await expect(root.getByRole("combobox", { name: "Outcome" })).toHaveValue("not succeeded");
  await expect(rows.filter({ hasText: "the other side hung up" }).first()).toBeVisible();
  await root.getByRole("button", { name: "Clear filters" }).click();
  await expect(rows.and(root.locator(':not([data-job="flaky"])')).first()).toBeVisible();
});

test("a list pages back in time and returns to the newest", async ({ root }) => {
  const path = `${baseUrl()}/api/v1/r/dev/executions?limit=1`;
  const first = (await (await root.request.get(path)).json()) as { next: string | null };
  expect(first.next).not.toBeNull();
  await root.goto(`${baseUrl()}/r/dev/history?after=${encodeURIComponent(first.next ?? "")}`);
  await expect(root.locator("[data-execution]").first()).toBeVisible();

  await root.getByRole("button", { name: "Newest" }).click();

  await expect(root).not.toHaveURL(/after=/);
  await expect(root.locator("[data-execution]").first()).toBeVisible();
});

test("the status trace keeps the job filter and filters by state", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/history?job=settle`);
  await root.getByRole("tab", { name: "Status trace" }).click();
  await expect(root).toHaveURL(/\/history\/traces\?job=settle/);
  const rows = root.locator("[data-trace]");
  await expect(rows.first()).toBeVisible(FAILURE_TIMEOUT);
  await expect(rows.and(root.locator(':not([data-job="settle"])'))).toHaveCount(0);

  await root.getByRole("combobox", { name: "State" }).click();
  await root.getByRole("option", { name: "finished" }).click();
  await expect(rows.filter({ hasText: "finished" }).first()).toBeVisible(FAILURE_TIMEOUT);
  await expect(rows.filter({ hasText: "running" })).toHaveCount(0);

  await root.getByRole("combobox", { name: "Time range" }).click();
  await root.getByRole("option", { name: "last hour" }).click();
  await expect(root).toHaveURL(/range=1h/);
  await expect(rows.first()).toBeVisible();
});

test("status changes of the same instant are listed in causal order", async ({ root }) => {
  const trace = {
    ...{ jobName: "settle", runId: null, taskId: "settle", originalTaskId: "", message: "" },
    ...{ creationTime: "2026-03-29T12:00:00Z", executionType: "READY", slaveId: "127.0.0.1" },
    shardingItems: "[0]",
  };
  const items = ["TASK_RUNNING", "TASK_FINISHED", "TASK_STAGING"].map((state) => ({
    ...trace,
    ...{ id: state, state },
  }));
  await root.route(/\/api\/v1\/r\/dev\/traces/, (route) =>
    route.fulfill({ json: { items, next: null } }),
  );

  await root.goto(`${baseUrl()}/r/dev/history/traces?job=settle`);

  const states = root.locator("[data-trace] td:nth-child(3)");
  await expect(states).toHaveText(["finished", "running", "staging"]);
});

test("the filtered list is exported as CSV and JSON", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/history?job=greet&range=1h`);
  await expect(root.locator("[data-execution]").first()).toBeVisible(FAILURE_TIMEOUT);

  const [csv] = await Promise.all([
    root.waitForEvent("download"),
    root.getByRole("link", { name: "Export as CSV" }).click(),
  ]);
  const [json] = await Promise.all([
    root.waitForEvent("download"),
    root.getByRole("link", { name: "Export as JSON" }).click(),
  ]);

  const [head, ...lines] = (await readDownload(csv)).trim().split("\r\n");
  expect(csv.suggestedFilename()).toBe("executions.csv");
  expect(head).toContain("id,jobName,runId");
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter((line) => !line.includes(",greet,"))).toEqual([]);
  const rows = JSON.parse(await readDownload(json)) as { jobName: string }[];
  expect(rows.length).toBeGreaterThanOrEqual(lines.length);
  expect(new Set(rows.map((row) => row.jobName))).toEqual(new Set(["greet"]));
});

test("similar failures are grouped and link to their runs", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/history/failures`);
  const group = root.locator('[data-failure="flaky"]');
  await expect(group).toContainText("the other side hung up", FAILURE_TIMEOUT);
  await expect(group).toHaveCount(1);

  await group.getByRole("link", { name: "last run" }).click();
  await expect(root.getByRole("heading", { name: "Run of flaky", level: 1 })).toBeVisible();
  await expect(root.getByRole("heading", { name: "Failure", exact: true })).toBeVisible();
  await expect(root.getByRole("button", { name: "Retry the failed shard" })).toBeEnabled();

  await root.goBack();
  const count = Number(await group.locator("td").nth(2).innerText());
  await group.getByRole("link", { name: "failed attempts" }).click();
  await expect(root).toHaveURL(/\/history\?job=flaky&success=false&from=.*&to=/);
  // Exactly those of the group: the job fails for no other reason.
  const attempts = root.locator("[data-execution]");
  await expect(attempts).toHaveCount(Math.min(count, 50));
  await expect(attempts.and(root.locator(':not([data-job="flaky"])'))).toHaveCount(0);
});

test("a run that lacks shards is incomplete, and shards of Java are not tracked", async ({
  root,
}) => {
  const response = await root.request.get(`${baseUrl()}/api/v1/r/dev/runs?state=done&limit=1`);
  const [run] = ((await response.json()) as RunList).items;
  const lacking = {
    state: "incomplete",
    expectedShards: 3,
    untrackedShards: 2,
    done: 1,
    shards: 1,
  };
  await root.route(/\/api\/v1\/r\/dev\/runs\/[^/]+$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...lacking } });
  });

  await root.goto(`${baseUrl()}/r/dev/runs/${encodeURIComponent(run?.runId ?? "")}`);

  await expect(root.getByText("incomplete", { exact: true })).toBeVisible();
  await expect(root.getByText("1 / 3")).toBeVisible();
  await expect(root.getByText("2 shards run by Java")).toBeVisible();
});

test("missed fires are listed with their reason", async ({ root }) => {
  // overrun sometimes runs longer than its interval; without misfire compensation the fire in between is skipped.
  await callApi(root, "PATCH", "/r/dev/jobs/overrun/config", { misfire: false });
  await root.goto(`${baseUrl()}/r/dev/history/missed?job=overrun`);
  const missed = root.locator('[data-missed="overrun"]');
  await expect(missed.first()).toContainText("the previous run was still going", {
    timeout: 120_000,
  });
  await expect(missed.first()).toContainText("skipped");
  await callApi(root, "PATCH", "/r/dev/jobs/overrun/config", { misfire: true });

  await root.goto(`${baseUrl()}/r/dev/history/missed?job=no-such-job`);
  await expect(root.getByText("No missed fires recorded")).toBeVisible();
  await root.goto(`${baseUrl()}/r/dev/history/no-such-view`);
  await expect(root.getByText("Page not found")).toBeVisible();
});

interface RunList {
  items: { runId: string; startedAt: string }[];
}

/** Opens a run of settle that has just started; it runs for at least seven seconds. */
async function openRunningRun(page: Page) {
  await expect(async () => {
    const response = await page.request.get(
      `${baseUrl()}/api/v1/r/dev/runs?job=settle&state=running`,
    );
    const [run] = ((await response.json()) as RunList).items;
    expect(run && Date.now() - Date.parse(run.startedAt)).toBeLessThan(4_000);
    await page.goto(`${baseUrl()}/r/dev/runs/${encodeURIComponent(run?.runId ?? "")}`);
    await expect(page.locator('[data-stream-state="live"]')).toBeVisible({ timeout: 4_000 });
    await expect(page.getByRole("button", { name: "Cancel this run" })).toBeVisible({
      timeout: 2_000,
    });
  }).toPass({ timeout: 100_000, intervals: [200] });
}

test("a running run shows its attempts and output live", async ({ root }) => {
  await root.setViewportSize({ width: 1280, height: 420 });
  await openRunningRun(root);
  await expect(root.locator("[data-attempt]")).toHaveCount(3, { timeout: 20_000 });
  await expect(root.getByRole("img", { name: /running/ }).first()).toBeVisible();
  const output = root.getByRole("region", { name: "Output" });

  // The last lines arrive as events, without a reload.
  await expect(output.getByText("15 of 15 orders are settled")).toHaveCount(3, {
    timeout: 45_000,
  });
  await expect(root.locator('[data-stream-state="ended"]')).toBeVisible({ timeout: 30_000 });
  await expect(root.locator("[data-attempt]").filter({ hasText: "done" })).toHaveCount(3, {
    timeout: 30_000,
  });

  const toEnd = root.getByRole("button", { name: "Jump to end" });
  await expect(toEnd).toHaveCount(0);
  await output.evaluate((box) => box.scrollTo({ top: 0 }));
  await toEnd.click();
  await expect(toEnd).toHaveCount(0);

  // The status trace of the run is shown too.
  const traces = root.getByRole("region", { name: "Status trace" });
  await expect(traces.locator("[data-trace]").filter({ hasText: "finished" })).not.toHaveCount(0);

  await root.getByRole("link", { name: "Show only the output of shard 1" }).click();
  await expect(root).toHaveURL(/shard=1/);
  await expect(output.getByText("15 of 15 orders are settled")).toHaveCount(1);
  await expect(output.getByText(/settle: [02] /)).toHaveCount(0);
});

test("a page holds one event stream, and none while hidden", async ({ root }) => {
  // A browser allows six connections per host over all tabs.
  const open = new Set<Request>();
  root.on("request", (request) => {
    if (request.url().includes("/events")) open.add(request);
  });
  for (const over of ["requestfailed", "requestfinished"] as const) {
    root.on(over as "requestfailed", (request: Request) => open.delete(request));
  }
  const streams = () =>
    [...open].map((request) => new URL(request.url()).pathname.split("/").slice(5));
  await root.addInitScript(() => {
    let isHidden = false;
    Object.defineProperty(document, "hidden", { get: () => isHidden });
    Object.assign(window, {
      hide: (hidden: boolean) => {
        isHidden = hidden;
        document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
      },
    });
  });
  const hide = (isHidden: boolean) =>
    root.evaluate(
      (hidden) => (window as never as { hide: (is: boolean) => void }).hide(hidden),
      isHidden,
    );

  await openRunningRun(root);
  await expect.poll(() => streams().map((path) => path.at(-2))).toEqual(["output"]);
  await hide(true);
  await expect.poll(streams).toEqual([]);
  await hide(false);
  await expect.poll(() => streams().length).toBe(1);

  await root.getByRole("link", { name: "Jobs", exact: true }).first().click();
  await expect.poll(streams).toEqual([["events"]]);
});

test("failed shards are retried and the new run is opened", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/runs?job=flaky&state=failed`);
  await root.locator("[data-run]").first().getByRole("link").first().click(FAILURE_TIMEOUT);
  await root.getByRole("button", { name: "Retry the failed shard" }).click();
  const dialog = root.getByRole("dialog", { name: "Trigger flaky" });
  await expect(dialog.getByRole("radio", { name: "selected shards" })).toBeChecked();
  await expect(dialog.getByLabel("Logical time")).not.toHaveValue("");
  const sent = root.waitForRequest("**/jobs/flaky/trigger");
  await dialog.getByRole("button", { name: "Trigger" }).click();
  const body = (await sent).postDataJSON() as { shards: number[]; at: string };
  expect(body.shards).toHaveLength(1);
  expect(body.at).toMatch(/Z$/);

  await expectNotification(root, /flaky: shard 0 triggered/);
  await expect(root).toHaveURL(/\/runs\/[0-9a-f-]{36}$/);
  await expect(root.getByRole("heading", { name: "Run of flaky", level: 1 })).toBeVisible({
    timeout: 45_000,
  });
  await expect(root.getByText("Triggered by")).toBeVisible();
});

test("a cancelled run does not read as failed", async ({ root }) => {
  await root.route(/\/api\/v1\/r\/dev\/runs\/[^/?]+$/, async (route) => {
    const response = await route.fetch();
    const run = (await response.json()) as { items: object[] };
    const items = run.items.map((item) => ({ ...item, state: "cancelled" }));
    const cancelled = { state: "cancelled", failed: 0, failure: "cancelled: on request", items };
    await route.fulfill({ response, json: { ...run, ...cancelled } });
  });
  await root.goto(`${baseUrl()}/r/dev/runs?job=flaky&state=failed`);
  await root.locator("[data-run]").first().getByRole("link").first().click(FAILURE_TIMEOUT);

  await expect(root.getByRole("heading", { name: "Reason", exact: true })).toBeVisible();
  await expect(root.getByRole("heading", { name: "Failure", exact: true })).toHaveCount(0);
  await expect(root.getByRole("button", { name: "Retry the cancelled shard" })).toBeVisible();
});

test("a retry of a triggered run says that its parameter is not recorded", async ({ root }) => {
  // The same run as if it had been triggered.
  await root.route(/\/api\/v1\/r\/dev\/runs\/[^/?]+$/, async (route) => {
    const response = await route.fetch();
    const run = (await response.json()) as Record<string, unknown>;
    await route.fulfill({ response, json: { ...run, source: "trigger" } });
  });
  await root.goto(`${baseUrl()}/r/dev/runs?job=flaky&state=failed`);
  await root.locator("[data-run]").first().getByRole("link").first().click(FAILURE_TIMEOUT);
  await root.getByRole("button", { name: "Retry the failed shard" }).click();

  const dialog = root.getByRole("dialog", { name: "Trigger flaky" });
  await expect(dialog).toContainText("its parameter is not recorded");
});

test("cancelling a run asks first and names that run", async ({ root }) => {
  await openRunningRun(root);
  const runId = decodeURIComponent(root.url().split("/").at(-1) ?? "");
  const sent = root.waitForRequest("**/jobs/settle/cancel");
  await root.getByRole("button", { name: "Cancel this run" }).click();
  const dialog = root.getByRole("dialog", { name: "Cancel the current run of settle?" });
  await expect(dialog).toContainText("what they have done already is not undone");
  await dialog.getByRole("button", { name: "Cancel the run" }).click();

  expect((await sent).postDataJSON()).toEqual({ run: runId });
  await expectNotification(root, /settle: cancellation requested for \d shards?/);
});

test("history stores are listed and cannot be added if that is disabled", async ({ root }) => {
  await root.goto(`${baseUrl()}/registries`);
  await root.getByRole("tab", { name: "History stores" }).click();
  await expect(root.getByRole("heading", { name: "History stores", level: 1 })).toBeVisible();
  await expect(root.getByRole("row", { name: /dev/ })).toContainText("sqlite:");
  await expect(root.getByText("adding them here is disabled")).toBeVisible();
  await expect(root.getByRole("button", { name: "Add history store" })).toHaveCount(0);
});

test("a history store is tested, added and removed", async ({ browser }) => {
  const console = await startBareConsole("addHistories");
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  try {
    const page = await context.newPage();
    await page.goto(`${console.url}/r/bare/history`);
    await submitLogin(page, "admin", console.password);
    await expect(page.getByText("No history store for bare")).toBeVisible();
    await expect(page.getByText("--history bare=postgres://")).toBeVisible();

    await page.getByRole("link", { name: "Add history store" }).click();
    await expect(page.getByText("No history stores")).toBeVisible();
    await page.getByRole("button", { name: "Add history store" }).click();
    const dialog = page.getByRole("dialog", { name: "Add history store" });
    await dialog.getByLabel("URL").fill("postgres://elsewhere.example/history");
    await dialog.getByRole("button", { name: "Test" }).click();
    await expect(dialog.getByRole("alert")).toContainText("is not an allowed host");

    await dialog.getByLabel("URL").fill("postgres://ann:secret@127.0.0.1:1/history");
    await dialog.getByRole("button", { name: "Test" }).click();
    await expect(dialog.getByRole("status")).toContainText("127.0.0.1", { timeout: 45_000 });
    await dialog.getByRole("button", { name: "Add history store" }).click();
    await expectNotification(page, "History store of bare added");
    const row = page.getByRole("row", { name: /bare/ });
    await expect(row).toContainText("added here");
    await expect(row).not.toContainText("secret");

    await row.getByRole("button", { name: "Remove the history store of bare" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await expectNotification(page, "History store of bare removed");
    await expect(page.getByText("No history stores")).toBeVisible();
  } finally {
    await context.close();
    await console.stop();
  }
});
