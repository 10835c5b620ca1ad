import type { Page } from "@playwright/test";

import { expect, fillIn, said, test } from "./person";
import { bare, demonstration, type Started } from "./start";

/** A demonstration of its own: what is shut down and removed here, others would miss. */
let demo: Started;
test.describe.configure({ mode: "serial", timeout: 120_000 });
test.beforeAll(async () => {
  demo = await demonstration();
});
test.afterAll(() => demo.end());
test.beforeEach(async ({ page, complaints }) => {
  expect(complaints).toEqual([]);
  await page.goto(demo.url);
  await fillIn(page, "root", "root");
  await expect(page.getByRole("button", { name: "Account root" })).toBeVisible();
});

const open = (page: Page, path: string) => page.goto(`${demo.url}/r/dev/${path}`);

async function more(page: Page, item: string) {
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: item }).click();
}

/** Does something to jobs of the list, at once. */
async function together(page: Page, jobs: string[], action: string) {
  await open(page, "jobs");
  for (const job of jobs) await page.getByRole("checkbox", { name: `Select ${job}` }).check();
  await page.getByRole("toolbar").getByRole("button", { name: action }).click();
  const dialog = page.getByRole("dialog");
  for (const job of jobs) await expect(dialog).toContainText(job);
  await dialog.getByRole("button", { name: action }).click();
  await expect(page.getByText(`${jobs.length} of ${jobs.length} done`)).toBeVisible();
  await dialog.getByRole("button", { name: "Close" }).last().click();
}

test("what runs is cancelled: a shard, or all of it", async ({ page }) => {
  await open(page, "jobs/settle");
  const runs = { timeout: 30_000 };
  await page.getByRole("button", { name: "Cancel shard 1" }).click(runs);
  await said(page, /settle: 1 shard asked to stop/);

  await expect(page.locator('[data-shard-row="0"]')).toContainText("running", runs);
  await more(page, "Cancel what runs");
  await said(page, /settle: \d shards? asked to stop/);

  await open(page, "runs?job=settle&state=cancelled");
  await expect(page.locator("[data-run]").first()).toContainText("cancelled", runs);
});

test("what the registry holds of a job is dumped", async ({ page }) => {
  await open(page, "jobs/greet");
  await more(page, "Dump");
  const dialog = page.getByRole("dialog", { name: "What the registry holds of greet" });
  await expect(dialog).toContainText("/greet/config");
  await expect(dialog).toContainText("/greet/leader");
});

test("many jobs are triggered at once", async ({ page }) => {
  await together(page, ["greet", "flaky"], "Trigger");
  await open(page, "runs?job=greet&source=trigger");
  await expect(page.locator("[data-run]").first()).toContainText("root", { timeout: 20_000 });
});

test("many jobs are shut down at once, and have nobody then", async ({ page }) => {
  await together(page, ["flaky", "overrun"], "Shut down");
  for (const job of ["flaky", "overrun"]) {
    await expect(page.locator(`[data-job="${job}"]`)).toContainText("no instance", {
      timeout: 30_000,
    });
  }
});

test("a job is shut down after saying what that means", async ({ page }) => {
  await open(page, "jobs/load");
  await more(page, "Shut down");
  const dialog = page.getByRole("dialog", { name: "Shut load down?" });
  await expect(dialog).toContainText("comes back only when the programs are started again");
  await dialog.getByRole("button", { name: "Shut down" }).click();

  await said(page, /load: \d instances? told to leave/);
  await expect(page.getByText("With nobody")).toBeVisible({ timeout: 30_000 });
});

test("a job that has instances is not removed, unless somebody insists", async ({ page }) => {
  await open(page, "jobs/ping");
  await more(page, "Remove");
  const dialog = page.getByRole("dialog", { name: "Remove ping?" });
  await expect(dialog).toContainText("still there, so it will be refused");
  await dialog.getByLabel("Type ping to confirm").fill("ping");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await said(page, /instance/);
  await expect(dialog).toBeVisible();

  await dialog.getByRole("checkbox", { name: /under their feet/ }).check();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await said(page, "ping is removed");
  await expect(page).toHaveURL(/\/r\/dev\/jobs$/);
});

test("a registry is tried, added, looked at and removed", async ({ browser }) => {
  const registry = /^registry\s+(zookeeper:\/\/\S+)/m.exec(demo.said)?.[1] ?? "";
  const console = await bare("addRegistries");
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  try {
    const page = await context.newPage();
    await page.goto(`${console.url}/registries`);
    await fillIn(page, "admin", console.password);
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
    await said(page, "Registry second is added");

    await page.getByRole("link", { name: "second" }).click();
    await page.getByRole("link", { name: "Jobs", exact: true }).first().click();
    await expect(page.getByRole("link", { name: "settle" })).toBeVisible({ timeout: 30_000 });

    await page.goto(`${console.url}/registries`);
    await page.getByRole("button", { name: "Remove registry second" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await said(page, "Registry second is removed");
    await expect(page.getByRole("link", { name: "second" })).toHaveCount(0);
  } finally {
    await context.close();
    await console.end();
  }
});
