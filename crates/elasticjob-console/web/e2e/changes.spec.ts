import type { Page } from "@playwright/test";

import { type ConsoleProcess, startBareConsole, startDemo } from "./consoleProcess";
import { expect, expectNotification, submitLogin, test } from "./fixtures";

/** A separate demo, because these tests shut down and remove jobs. */
let demo: ConsoleProcess;
test.describe.configure({ mode: "serial", timeout: 120_000 });
test.beforeAll(async () => {
  demo = await startDemo();
});
test.afterAll(() => demo.stop());
test.beforeEach(async ({ page, browserErrors }) => {
  expect(browserErrors).toEqual([]);
  await page.goto(demo.url);
  await submitLogin(page, "root", "root");
  await expect(page.getByRole("button", { name: "Account root" })).toBeVisible();
});

const openPage = (page: Page, path: string) => page.goto(`${demo.url}/r/dev/${path}`);

async function chooseFromMenu(page: Page, item: string) {
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: item }).click();
}

/** Applies a bulk action to jobs of the list. */
async function runBulkAction(page: Page, jobs: string[], action: string) {
  await openPage(page, "jobs");
  for (const job of jobs) await page.getByRole("checkbox", { name: `Select ${job}` }).check();
  await page.getByRole("toolbar").getByRole("button", { name: action }).click();
  const dialog = page.getByRole("dialog");
  for (const job of jobs) await expect(dialog).toContainText(job);
  await dialog.getByRole("button", { name: action }).click();
  await expect(page.getByText(`${jobs.length} of ${jobs.length} done`)).toBeVisible();
  await dialog.getByRole("button", { name: "Close" }).last().click();
}

test("a shard or the whole current run is cancelled", async ({ page }) => {
  await openPage(page, "jobs/settle");
  const runs = { timeout: 30_000 };
  await page.getByRole("button", { name: "Cancel shard 1" }).click(runs);
  const confirm = page.getByRole("dialog").getByRole("button", { name: "Cancel the run" });
  await confirm.click();
  await expectNotification(page, /settle: cancellation requested for 1 shard/);

  await expect(page.locator('[data-shard-row="0"]')).toContainText("running", runs);
  await chooseFromMenu(page, "Cancel current run");
  await confirm.click();
  await expectNotification(page, /settle: cancellation requested for \d shards?/);

  await openPage(page, "runs?job=settle&state=cancelled");
  await expect(page.locator("[data-run]").first()).toContainText("cancelled", runs);
});

test("registry data of a job is dumped", async ({ page }) => {
  await openPage(page, "jobs/greet");
  await chooseFromMenu(page, "Dump");
  const dialog = page.getByRole("dialog", { name: "Registry data of greet" });
  await expect(dialog).toContainText("/greet/config");
  await expect(dialog).toContainText("/greet/leader");
});

test("bulk trigger runs several jobs", async ({ page }) => {
  await runBulkAction(page, ["greet", "flaky"], "Trigger");
  await openPage(page, "runs?job=greet&source=trigger");
  await expect(page.locator("[data-run]").first()).toContainText("root", { timeout: 20_000 });
});

test("bulk shutdown leaves several jobs without instances", async ({ page }) => {
  await runBulkAction(page, ["flaky", "overrun"], "Shut down");
  for (const job of ["flaky", "overrun"]) {
    await expect(page.locator(`[data-job="${job}"]`)).toContainText("no instance", {
      timeout: 30_000,
    });
  }
});

test("a job is shut down after confirmation", async ({ page }) => {
  await openPage(page, "jobs/load");
  await chooseFromMenu(page, "Shut down");
  const dialog = page.getByRole("dialog", { name: "Shut load down?" });
  await expect(dialog).toContainText("runs again only after its programs are restarted");
  await dialog.getByRole("button", { name: "Shut down" }).click();

  await expectNotification(page, /load: shutdown requested for \d instances?/);
  await expect(page.getByText("Unassigned", { exact: true })).toBeVisible({ timeout: 30_000 });
});

test("a job with instances is removed only by force", async ({ page }) => {
  await openPage(page, "jobs/ping");
  await chooseFromMenu(page, "Remove");
  const dialog = page.getByRole("dialog", { name: "Remove ping?" });
  await expect(dialog).toContainText("still online, so the removal will be refused");
  await dialog.getByLabel("Type ping to confirm").fill("ping");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await expectNotification(page, /instance/);
  await expect(dialog).toBeVisible();

  await dialog.getByRole("checkbox", { name: /while instances are online/ }).check();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await expectNotification(page, "ping removed");
  await expect(page).toHaveURL(/\/r\/dev\/jobs$/);
});

test("a registry is tested, added, opened and removed", async ({ browser }) => {
  const registry = /^registry\s+(zookeeper:\/\/\S+)/m.exec(demo.output)?.[1] ?? "";
  const console = await startBareConsole("addRegistries");
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  try {
    const page = await context.newPage();
    await page.goto(`${console.url}/registries`);
    await submitLogin(page, "admin", console.password);
    await page.getByRole("button", { name: "Add registry" }).click();
    const dialog = page.getByRole("dialog", { name: "Add registry" });
    await dialog.getByLabel("Name").fill("second");
    await dialog.getByLabel("URL").fill("zookeeper://elsewhere.example/jobs");
    await dialog.getByRole("button", { name: "Test" }).click();
    await expect(dialog.getByRole("alert")).toContainText("is not an allowed host");

    await dialog.getByLabel("URL").fill(registry);
    await dialog.getByRole("button", { name: "Test" }).click();
    await expect(dialog.getByRole("status")).toContainText("Reachable", { timeout: 45_000 });
    await dialog.getByRole("button", { name: "Add registry" }).click();
    await expectNotification(page, "Registry second added");

    await page.getByRole("link", { name: "second" }).click();
    await page.getByRole("link", { name: "Jobs", exact: true }).first().click();
    await expect(page.getByRole("link", { name: "settle" })).toBeVisible({ timeout: 30_000 });

    await page.goto(`${console.url}/registries`);
    await page.getByRole("button", { name: "Remove registry second" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await expectNotification(page, "Registry second removed");
    await expect(page.getByRole("link", { name: "second" })).toHaveCount(0);
  } finally {
    await context.close();
    await console.stop();
  }
});
