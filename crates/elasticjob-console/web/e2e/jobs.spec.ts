import { baseUrl, callApi, expect, expectNotification, test } from "./fixtures";

test.beforeEach(async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs`);
  await expect(root.getByRole("link", { name: "settle" })).toBeVisible();
});

test("a search finds jobs by words and keys and rejects unknown keys", async ({ root }) => {
  const search = root.getByRole("searchbox", { name: "Search jobs" });
  await root.keyboard.press("/");
  await expect(search).toBeFocused();

  await search.fill("handler:script");
  await expect(root.getByRole("link", { name: "load" })).toBeVisible();
  await expect(root.getByRole("link", { name: "settle" })).toHaveCount(0);
  expect(root.url()).toContain("q=handler");

  await search.fill("colour:red");
  await expect(root.getByText(/is not a search key/)).toBeVisible();
  await expect(root.getByText("No matching jobs")).toHaveCount(0);

  await search.fill("no such job anywhere");
  await expect(root.getByText("No matching jobs")).toBeVisible();
  await root.getByRole("button", { name: "Show all" }).click();
  await expect(root.getByRole("link", { name: "settle" })).toBeVisible();
});

test("a search typed just before Show all does not come back", async ({ root }) => {
  const search = root.getByRole("searchbox", { name: "Search jobs" });
  await search.fill("no such job anywhere");
  await expect(root.getByText("No matching jobs")).toBeVisible();

  // The clock is stopped, so the typed text is not applied before the click.
  await root.clock.install();
  await root.clock.pauseAt(Date.now() + 1000);
  await search.fill("no such job nowhere");
  await root.getByRole("button", { name: "Show all" }).click();
  await root.clock.runFor(1000);
  await expect(search).toHaveValue("");
  await expect(root.getByRole("link", { name: "settle" })).toBeVisible();
});

test("bulk disable and enable update the list", async ({ root }) => {
  const row = root.locator('[data-job="ping"]');
  for (const name of ["ping", "load"])
    await root.getByRole("checkbox", { name: `Select ${name}` }).check();
  await root.getByRole("toolbar").getByRole("button", { name: "Disable" }).click();
  await root.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await expect(root.getByText("2 of 2 done")).toBeVisible();
  await root.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();

  await expect(row).toContainText("disabled");
  await expect(root.getByRole("button", { name: "disabled 2" })).toBeVisible();

  await root.getByRole("toolbar").getByRole("button", { name: "Enable" }).click();
  await root.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
  await expect(root.getByText("2 of 2 done")).toBeVisible();
  await root.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  await expect(row).not.toContainText("disabled");
});

test("a failure to select all jobs is shown", async ({ root }) => {
  const refused = { status: 403, json: { code: "forbidden", detail: "not so many" } };
  await root.route("**/api/v1/r/dev/jobs?*pageSize=1000*", (route) => route.fulfill(refused));
  await root.getByRole("checkbox", { name: "Select greet" }).check();
  await root.getByRole("button", { name: /^Select all \d+ matching jobs/ }).click();

  await expectNotification(root, "not so many");
  await expect(root.getByText("1 selected")).toBeVisible();
});

test("a search is saved as a view, opened and removed", async ({ root }) => {
  const views = root.getByRole("button", { name: "Views" });
  await views.click();
  await expect(root.getByRole("menuitem", { name: "Save this search" })).toBeDisabled();
  await root.keyboard.press("Escape");
  await root.getByRole("searchbox", { name: "Search jobs" }).fill("handler:script");
  await expect(root.getByRole("link", { name: "settle" })).toHaveCount(0);
  await views.click();
  await root.getByRole("menuitem", { name: "Save this search" }).click();
  await root.getByRole("dialog").getByLabel("Name").fill("scripts");
  await root.getByRole("dialog").getByRole("button", { name: "Save" }).click();

  await root.goto(`${baseUrl()}/r/dev/jobs`);
  await expect(root.getByRole("link", { name: "settle" })).toBeVisible();
  await views.click();
  await root.getByRole("menuitem", { name: "scripts", exact: true }).click();
  await expect(root).toHaveURL(/q=handler/);
  await expect(root.getByRole("link", { name: "settle" })).toHaveCount(0);

  await views.click();
  await root.getByRole("menuitem", { name: "Remove view scripts" }).click();
  await root.reload();
  await views.click();
  await expect(root.getByRole("menuitem", { name: "scripts", exact: true })).toHaveCount(0);
});

test("a job is triggered from the list", async ({ root }) => {
  await root.getByRole("button", { name: "Actions for greet" }).click();
  await root.getByRole("menuitem", { name: "Trigger" }).click();
  await expectNotification(root, /greet: triggered on 3 instances/);
});

test("a job is disabled from the list after confirmation", async ({ root }) => {
  const row = root.locator('[data-job="load"]');
  const open = async (item: string) => {
    await root.getByRole("button", { name: "Actions for load" }).click();
    await root.getByRole("menuitem", { name: item }).click();
  };
  await open("Disable");
  const dialog = root.getByRole("dialog", { name: "Disable load?" });
  await expect(dialog).toContainText("It does not run on schedule until it is enabled.");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(row).not.toContainText("disabled");

  await open("Disable");
  await dialog.getByRole("button", { name: "Disable" }).click();
  await expectNotification(root, "load disabled");
  await expect(row).toContainText("disabled");
  await open("Enable");
  await expectNotification(root, "load enabled");
});

test("changes by others appear through events, without requests", async ({ root }) => {
  const row = root.locator('[data-job="greet"]');
  await expect(root.locator('[data-connection="live"]')).toBeAttached();
  // From now on, requests for the list fail, so updates can only come from events.
  const refused = { status: 403, json: { code: "forbidden", detail: "not now" } };
  await root.route("**/api/v1/r/dev/jobs?*", (route) => route.fulfill(refused));

  await callApi(root, "POST", "/r/dev/jobs/greet/disable");
  await expect(row).toContainText("disabled");
  await callApi(root, "POST", "/r/dev/jobs/greet/enable");
  await expect(row).not.toContainText("disabled");
  // settle runs every ten seconds for seven seconds.
  const settle = root.locator('[data-job="settle"]');
  await expect(settle).not.toContainText("running", { timeout: 20_000 });
  await expect(settle).toContainText("running", { timeout: 20_000 });
});

test("a disabled job without an instance reads as disabled", async ({ root }) => {
  await root.route(/\/api\/v1\/r\/dev\/jobs\?/, async (route) => {
    const response = await route.fetch();
    const page = (await response.json()) as { items: Record<string, unknown>[] };
    const off = { status: "CRASHED", disabled: true, instanceCount: 0 };
    const items = page.items.map((row) => (row.jobName === "greet" ? { ...row, ...off } : row));
    await route.fulfill({ response, json: { ...page, items } });
  });
  await root.reload();

  const row = root.locator('[data-job="greet"]');
  await expect(row).toContainText("disabled");
  await expect(row).toContainText("none while disabled");
});

test("the next fire time advances", async ({ root }) => {
  const next = root.locator('[data-job="greet"]').locator("time").first();
  const before = await next.getAttribute("datetime");
  await expect(next).not.toHaveAttribute("datetime", before ?? "", { timeout: 30_000 });
});

test("quoted text in an error is shown as code, without backticks", async ({ root }) => {
  await root.getByRole("link", { name: "New job" }).click();
  await root.getByLabel("Name", { exact: true }).fill("a/b");

  await expect(root.locator("code").filter({ hasText: /^\/$/ })).toBeVisible();
  await expect(root.getByText("`")).toHaveCount(0);
});

test("a job is created, and removed after typing its name", async ({ root }) => {
  await root.getByRole("link", { name: "New job" }).click();
  await root.getByLabel("Name", { exact: true }).fill("made-here");
  await root.getByLabel("Cron").fill("0 0 4 * * ?");
  // A script job without a command has nothing to run.
  await expect(root.getByText("Enter script.command.line")).toBeVisible();
  await expect(root.getByRole("button", { name: "Review changes" })).toBeDisabled();
  await root.getByLabel("Value of script.command.line").fill("echo hello");
  await root.getByRole("button", { name: "Review changes" }).click();
  await root.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await expect(root.getByRole("heading", { name: "made-here", level: 1 })).toBeVisible();

  await root.getByRole("button", { name: "More" }).click();
  await root.getByRole("menuitem", { name: "Remove" }).click();
  const dialog = root.getByRole("dialog");
  await expect(dialog.getByRole("button", { name: "Remove" })).toBeDisabled();
  await dialog.getByLabel("Type made-here to confirm").fill("made-here");
  await dialog.getByRole("button", { name: "Remove" }).click();

  await expectNotification(root, "made-here removed");
  await expect(root.getByRole("link", { name: "made-here" })).toHaveCount(0);
});
