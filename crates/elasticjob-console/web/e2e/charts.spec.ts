import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";

import { baseUrl, callApi, expect, test } from "./fixtures";

/** The count of a layer in a chart's legend. */
async function legendCount(page: Page, chart: string, word: string): Promise<number> {
  const figure = page.getByRole("figure", { name: chart });
  const text = await figure.getByRole("listitem").filter({ hasText: word }).first().innerText();
  return Number(/([\d,]+)\s*$/.exec(text)?.[1]?.replace(/,/g, "") ?? "0");
}

test("the chart of recent runs is updated live", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev`);
  const outcomes = root.getByRole("figure", { name: "Runs by outcome" });
  await expect(outcomes.locator("canvas")).toBeVisible();
  await expect(root.getByRole("figure", { name: "Longest start delay" })).toBeVisible();

  const before = await legendCount(root, "Runs by outcome", "done");
  await callApi(root, "POST", "/r/dev/jobs/load/trigger");
  await expect
    .poll(() => legendCount(root, "Runs by outcome", "done"), { timeout: 10_000 })
    .toBeGreaterThan(before);
  // The canvas has several colours, so something was drawn.
  const colours = await outcomes.locator("canvas").evaluate((canvas: HTMLCanvasElement) => {
    const drawn = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height);
    return drawn ? new Set(new Uint32Array(drawn.data.buffer)).size : 0;
  });
  expect(colours).toBeGreaterThan(5);
});

test("a chart can be shown as a table that links to failed runs", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev`);
  // The job flaky fails twice a minute.
  await expect
    .poll(() => legendCount(root, "Runs by outcome", "failed"), { timeout: 45_000 })
    .toBeGreaterThan(0);
  await root.getByRole("button", { name: "Runs by outcome: table" }).click();
  const table = root.getByRole("region", { name: "Runs by outcome: table" });
  const { violations } = await new AxeBuilder({ page: root }).include("figure").analyze();
  expect(violations).toEqual([]);

  // The column after the time counts failed runs.
  const counts = root.locator("td:nth-child(2)").filter({ hasText: /^[1-9]/ });
  await table.getByRole("row").filter({ has: counts }).first().getByRole("link").click();
  await expect(root.getByRole("heading", { name: "Runs", level: 1 })).toBeVisible();
  const parameters = new URL(root.url()).searchParams;
  expect(parameters.get("state")).toBe("failed");
  const [from, to] = [parameters.get("from"), parameters.get("to")].map((at) =>
    Date.parse(at ?? ""),
  );
  expect((to ?? 0) - (from ?? 0)).toBe(60_000);
});

test("a bar links to the failed runs of its period", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev`);
  await expect
    .poll(() => legendCount(root, "Runs by outcome", "failed"), { timeout: 45_000 })
    .toBeGreaterThan(0);
  const plot = root.getByRole("figure", { name: "Runs by outcome" }).locator(".u-over");
  const box = await plot.boundingBox();
  if (!box) throw new Error("the plot is not visible");
  // From the newest bar to older ones, until one has failed runs.
  for (let bar = 0.5; bar < 5; bar += 1) {
    await root.mouse.move(box.x + box.width * (1 - bar / 60), box.y + box.height / 2);
    if ((await legendCount(root, "Runs by outcome", "failed")) > 0) break;
  }
  await root.mouse.down();
  await root.mouse.up();
  await expect(root).toHaveURL(/\/runs\?.*state=failed/);
});

test("the time range is kept in the URL and applies to the tiles", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev`);
  const range = root.getByRole("radiogroup", { name: "Time range" });
  await range.getByText("7 d").click();
  await expect(root).toHaveURL(/range=7d/);

  await root.reload();

  await expect(range.getByRole("radio", { name: "7 d" })).toBeChecked();
  const answered = await root.request.get(`${baseUrl()}/api/v1/r/dev/overview?hours=168`);
  const { lastHours } = (await answered.json()) as { lastHours: { missed: number } };
  await expect(root.locator("[data-tile]").filter({ hasText: "Missed" })).toContainText(
    String(lastHours.missed),
  );
});

test("the tile Late links to the start delay chart", async ({ root }) => {
  await root.setViewportSize({ width: 1280, height: 420 });
  await root.goto(`${baseUrl()}/r/dev?range=6h`);
  const chart = root.getByRole("figure", { name: "Longest start delay" });
  await expect(chart).toBeVisible();
  await expect(chart).not.toBeInViewport({ ratio: 0.9 });

  await root.locator("[data-tile]").filter({ hasText: "Late" }).click();

  await expect(chart).toBeInViewport({ ratio: 0.9 });
  await expect(root).toHaveURL(/\/r\/dev\?range=6h#/);
});

test("without a history store, missed fires read as not recorded", async ({ root }) => {
  await root.route("**/api/v1/r/dev/overview*", async (route) => {
    const response = await route.fetch();
    const overview = (await response.json()) as object;
    const json = { ...overview, incidents: [], incidentCount: 0, lastHours: null };
    await route.fulfill({ response, json });
  });

  await root.goto(`${baseUrl()}/r/dev`);

  const tile = root.locator("[data-tile]").filter({ hasText: "Missed" });
  await expect(tile).toContainText("not recorded");
  await expect(root.getByText("Missed fires are not recorded")).toBeVisible();
});

test("truncated and estimated data is marked", async ({ root }) => {
  const incidents = Array.from({ length: 50 }, (_, number) => ({
    jobName: `job-${number}`,
    kind: "crashed",
    message: "the job has no instance",
  }));
  let incidentCount = 1_234;
  await root.route("**/api/v1/r/dev/overview*", async (route) => {
    const response = await route.fetch();
    const overview = (await response.json()) as Record<string, unknown>;
    await route.fulfill({ response, json: { ...overview, incidents, incidentCount } });
  });
  let isEstimated = true;
  await root.route("**/api/v1/r/dev/forecast*", async (route) => {
    const response = await route.fetch();
    const heat = (await response.json()) as Record<string, unknown>;
    await route.fulfill({ response, json: { ...heat, isEstimated } });
  });
  await root.goto(`${baseUrl()}/r/dev`);
  await expect(root.getByText("The 50 most severe of 1,234 problems.")).toBeVisible();
  await expect(root.getByText(/About [\d,]+ fires in 24 hours/)).toBeVisible();

  incidentCount = 50;
  isEstimated = false;
  await root.reload();
  await expect(root.getByRole("button", { name: "42 more" })).toBeVisible();
  await expect(root.getByText(/most severe of/)).toHaveCount(0);
  await expect(root.getByText(/^[\d,]+ fires in 24 hours/)).toBeVisible();
});

test("recent runs of a job are listed and updated by events", async ({ root }) => {
  const requests: string[] = [];
  root.on("request", (request) => {
    if (request.url().includes("/figures?")) requests.push(request.url());
  });
  await root.goto(`${baseUrl()}/r/dev/jobs`);
  const spark = root.locator('[data-job="greet"] [data-spark]');
  await expect(spark).toHaveAttribute("aria-label", /The last \d+ runs?: .*done/);
  const newest = () => spark.locator("path").last().getAttribute("d");
  const drawn = () => spark.locator("path").count();
  const before = [await newest(), await drawn()];
  expect(requests).toHaveLength(1);

  await expect
    .poll(async () => [await newest(), await drawn()], { timeout: 25_000 })
    .not.toEqual(before);

  // The run came as an event, without another request.
  expect(requests.length).toBeLessThanOrEqual(2);
  await spark.click();
  await expect(root).toHaveURL(/\/runs\?job=greet/);
});

test("the legend counts runs that failed within a millisecond", async ({ root }) => {
  const run = { state: "failed", startedAt: "2026-03-29T12:00:00Z", durationMs: 0, latenessMs: 0 };
  const lastRuns = [1, 2, 3].map((number) => ({ ...run, runId: `flaky/${number}` }));
  await root.route("**/api/v1/r/dev/jobs/flaky/figures*", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), lastRuns } });
  });

  await root.goto(`${baseUrl()}/r/dev/jobs/flaky`);

  const chart = "Duration of recent runs";
  await expect(root.getByRole("figure", { name: chart })).toBeVisible();
  expect(await legendCount(root, chart, "failed")).toBe(3);
  await root.getByRole("button", { name: `${chart}: table` }).click();
  const table = root.getByRole("region", { name: `${chart}: table` });
  await expect(table.getByRole("link")).toHaveCount(3);
});

test("the newest run is in sight when recorded runs arrive late", async ({ root }) => {
  await root.setViewportSize({ width: 390, height: 844 });
  // Forty recorded runs that arrive after the page has observed the newest one.
  await root.route("**/api/v1/r/dev/jobs/greet/matrix*", async (route) => {
    const response = await route.fetch();
    const { runs } = (await response.json()) as { runs: object[] };
    const earlier = Array.from({ length: 40 - runs.length }, (_, number) => ({
      run: { runId: `greet/${number}`, dueAt: new Date(number).toISOString() },
      items: [],
    }));
    await expect(root.locator("[data-shard-row='0']")).toBeVisible();
    await route.fulfill({ response, json: { runs: [...runs, ...earlier] } });
  });

  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);

  const cells = root.locator("[data-row='0']");
  await expect(cells).toHaveCount(40);
  // At once: the next run would bring itself into sight.
  await expect(cells.last()).toBeInViewport({ ratio: 1, timeout: 1_000 });

  // Its signs are explained: a circle is a triggered run.
  await expect(root.locator("[data-legend]")).toContainText("triggered run");

  // A user who scrolled back is not disturbed by the next run.
  const history = root.getByRole("region", { name: "Run history" });
  await history.evaluate((box) => box.scrollTo({ left: 0 }));
  const newest = await cells.last().getAttribute("href");
  await expect(cells.last()).not.toHaveAttribute("href", newest ?? "", { timeout: 25_000 });
  expect(await history.evaluate((box) => box.scrollLeft)).toBe(0);
});

test("the run history shows recorded runs, is updated live and links to runs", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);
  const cells = root.getByRole("region", { name: "Run history" }).getByRole("link");
  await expect.poll(() => cells.count()).toBeGreaterThanOrEqual(3);
  const newest = () => cells.first().locator("xpath=../..").getByRole("link").count();
  const before = await newest();
  await expect.poll(newest, { timeout: 25_000 }).toBeGreaterThan(before);
  await expect(root.locator("[data-figures]")).toContainText("Last success");

  const last = root.locator("[data-row='0']").last();
  await last.focus();
  await root.keyboard.press("ArrowLeft");
  await root.keyboard.press("ArrowDown");
  await expect(root.locator(":focus")).toHaveAttribute("data-row", "1");
  await root.keyboard.press("Enter");
  await expect(root).toHaveURL(/\/runs\/greet/);
  await expect(root.getByRole("heading", { level: 1 })).toBeVisible();
});
