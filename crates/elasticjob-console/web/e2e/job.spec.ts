import { baseUrl, callApi, expect, expectNotification, test } from "./fixtures";

test("a job is disabled after confirmation and enabled again", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/load`);
  await root.getByRole("button", { name: "Disable", exact: true }).click();
  const dialog = root.getByRole("dialog", { name: "Disable load?" });
  await expect(dialog).toContainText("It does not run on schedule until it is enabled.");
  await dialog.getByRole("button", { name: "Disable" }).click();
  await expectNotification(root, "load disabled");

  // A disabled job has no next run, and its shards are not ready.
  await expect(root.getByText("The job is disabled. It does not run on schedule")).toBeVisible();
  await expect(root.getByText(/^in \d+ sec/)).toHaveCount(0);
  await expect(root.locator('[data-shard-row="0"]')).toContainText("disabled");
  await expect(root.getByText("ready", { exact: true })).toHaveCount(1); // the legend

  await root.getByRole("button", { name: "Enable", exact: true }).click();
  await expectNotification(root, "load enabled");
  await expect(root.getByRole("button", { name: "Disable", exact: true })).toBeVisible();
});

test("a selected shard is triggered with a parameter", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);
  await root.getByRole("button", { name: "Trigger", exact: true }).click();
  const dialog = root.getByRole("dialog", { name: "Trigger greet" });
  await dialog.getByText("selected shards", { exact: true }).click();
  await expect(dialog.getByRole("button", { name: "Trigger" })).toBeDisabled();
  await expect(dialog).toContainText("Select at least one shard.");
  await dialog.getByText("1 · Shanghai").click();
  await expect(dialog).toContainText("Shard 1 runs once, now; the others do not.");
  await expect(dialog.getByRole("listitem").last()).toHaveText(/^worker-\d$/);
  await dialog.getByLabel("Parameter for this run").fill("again");
  await dialog.getByRole("button", { name: "Trigger" }).click();
  await expectNotification(root, /greet: shard 1 triggered/);
  // The notification leads to the run.
  await root.getByRole("alert").getByRole("link", { name: "Open the run" }).click();
  await expect(root).toHaveURL(/\/runs\/[0-9a-f-]{36}$/);
  await expect(root.getByRole("heading", { name: "Run of greet", level: 1 })).toBeVisible();
});

test("a retried trigger has the same idempotency key, also over plain HTTP", async ({ root }) => {
  // Browsers have no randomUUID over plain HTTP.
  await root.addInitScript(() => Reflect.deleteProperty(Crypto.prototype, "randomUUID"));
  const keys: (string | undefined)[] = [];
  await root.route("**/jobs/load/trigger", async (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    if (keys.length > 1) return route.continue();
    const problem = { code: "refused", detail: "the line broke" };
    return route.fulfill({ status: 409, json: problem });
  });
  await root.goto(`${baseUrl()}/r/dev/jobs/load`);
  await root.getByRole("button", { name: "Trigger", exact: true }).click();
  const trigger = root.getByRole("dialog").getByRole("button", { name: "Trigger" });
  await trigger.click();
  await expectNotification(root, "the line broke");
  await trigger.click();

  await expectNotification(root, /load: triggered on \d instances?/);
  expect(keys).toHaveLength(2);
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(keys[1]).toBe(keys[0]);
});

test("a menu is operated by keys and returns the focus", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);
  const more = root.getByRole("button", { name: "More" });
  await more.focus();
  await root.keyboard.press("Enter");
  await expect(root.getByRole("menuitem", { name: "Cancel current run" })).toBeFocused();
  await root.keyboard.press("ArrowDown");
  await expect(root.getByRole("menuitem", { name: "Shut down" })).toBeFocused();
  await root.keyboard.press("Escape");
  await expect(root.getByRole("menu")).toHaveCount(0);
  await expect(more).toBeFocused();
});

test("a shard is disabled and enabled in its row", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/ping`);
  const row = root.locator('[data-shard-row="1"]');
  await row.getByRole("button", { name: "Disable shard 1" }).click();
  await expect(row).toContainText("disabled");
  await row.getByRole("button", { name: "Enable shard 1" }).click();
  await expect(row).not.toContainText("disabled");
});

test("the page of a job with 64 shards is a few screens long", async ({ root }) => {
  await root.route(/\/api\/v1\/r\/dev\/jobs\/greet\/shards\?/, async (route) => {
    const response = await route.fetch();
    const page = (await response.json()) as { items: object[] };
    const items = Array.from({ length: 64 }, (_, item) => ({ ...page.items[0], item }));
    await route.fulfill({ response, json: { ...page, items, total: 64 } });
  });

  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);

  await expect(root.locator("[data-shard-row]")).toHaveCount(64);
  const height = await root.evaluate(() => document.documentElement.scrollHeight);
  expect(height).toBeLessThan(4 * 860);
  await root.locator('[data-shard-row="63"]').scrollIntoViewIfNeeded();
  await expect(root.locator('[data-shard-row="63"]')).toBeInViewport();
  await expect(root.getByRole("columnheader", { name: "Owner" })).toBeInViewport();
});

test("settings of a job are described in words", async ({ root }) => {
  await root.route("**/api/v1/r/dev/jobs/greet", async (route) => {
    const response = await route.fetch();
    const job = (await response.json()) as { config: { properties: { props: unknown } } };
    job.config.properties.props = {
      "elasticjob.catch.up": "all:6h",
      "elasticjob.on.lease.loss": "finish-fenced",
      "elasticjob.dst": "quartz",
    };
    await route.fulfill({ response, json: job });
  });
  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);
  const holds = root.locator("dl").filter({ hasText: "Failover" });

  await expect(holds).toContainText("all fires missed in the last 6h run later, in order");
  await expect(holds).toContainText("the attempt finishes and counts as fenced");
  await expect(holds).toContainText("same as Quartz");
});

test("a configuration is validated while typing and reviewed before saving", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/flaky/config`);
  const description = root.getByRole("textbox", { name: "Description" });
  await root.getByLabel("Cron").fill("0 0 99 * * ?");
  await expect(root.getByText(/99/).filter({ hasText: "cron" })).toBeVisible();
  await expect(root.getByRole("button", { name: "Review changes" })).toBeDisabled();

  await root.getByLabel("Cron").fill("0/15 * * * * ?");
  await description.fill("fails on purpose");
  await root.getByRole("button", { name: "Review changes" }).click();
  const dialog = root.getByRole("dialog", { name: "Change flaky" });
  await expect(dialog.getByRole("row", { name: /description/ })).toContainText("fails on purpose");
  await dialog.getByRole("button", { name: "Save" }).click();

  await expectNotification(root, /Saved as version/);
  await root.goto(`${baseUrl()}/audit`);
  const entry = root.getByRole("row").filter({ hasText: "job.config" }).first();
  await expect(entry).toContainText("flaky");
  await entry.getByRole("button", { name: "Details" }).click();
  const changes = root.getByRole("table", { name: "Changes" });
  await expect(changes.getByRole("row", { name: /description/ })).toContainText("fails on purpose");
});

test("a page with unsaved changes asks before it is left", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/load/config`);
  const label = root.getByRole("textbox", { name: "Label" });
  await label.fill("unsaved");
  const question = root.getByRole("dialog", { name: "Leave without saving?" });

  await root.getByRole("tab", { name: "Shards" }).click();
  await question.getByRole("button", { name: "Cancel" }).click();
  await expect(label).toHaveValue("unsaved");

  // The browser asks in its own words before the tab is closed.
  const asked = root.waitForEvent("dialog");
  await root.close({ runBeforeUnload: true });
  const dialog = await asked;
  expect(dialog.type()).toBe("beforeunload");
  await dialog.dismiss();
  await expect(label).toHaveValue("unsaved");

  await root.getByRole("link", { name: "Servers" }).first().click();
  await question.getByRole("button", { name: "Discard and leave" }).click();
  await expect(root.getByRole("heading", { name: "Servers", level: 1 })).toBeVisible();

  // Without edits, and with edits taken back, nothing asks.
  await root.goto(`${baseUrl()}/r/dev/jobs/load/config`);
  await label.fill("typed");
  await label.fill("");
  await root.getByRole("tab", { name: "Shards" }).click();
  await expect(root).toHaveURL(/\/jobs\/load$/);
});

test("an empty field shows no text that looks like a value", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/load/config`);
  await expect(root.getByRole("textbox", { name: "Timeout" })).toBeVisible();

  const placeholders = await root
    .locator("form [data-key][placeholder]")
    .evaluateAll((fields) => fields.map((field) => (field as HTMLInputElement).placeholder));

  expect(placeholders.length).toBeGreaterThan(5);
  expect(placeholders.filter((text) => !/^(e\.g\. |default)/.test(text) && text !== "")).toEqual(
    [],
  );
});

test("only the reviewed configuration can be saved", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/load/config`);
  const label = root.getByRole("textbox", { name: "Label" });
  await label.fill("first");
  await expect(root.getByText("1 change")).toBeVisible();
  // Save must never be enabled while the dialog shows an outdated configuration.
  await root.evaluate(() => {
    const enabledWith: string[] = [];
    (window as unknown as { enabledWith: string[] }).enabledWith = enabledWith;
    new MutationObserver(() => {
      const dialog = document.querySelector('[role="dialog"]');
      const store = [...(dialog?.querySelectorAll("button") ?? [])].find(
        (button) => button.textContent === "Save",
      );
      if (store && !store.disabled) enabledWith.push(dialog?.textContent ?? "");
    }).observe(document.body, { subtree: true, childList: true, attributes: true });
  });

  await label.fill("second");
  await label.press("Enter");
  const dialog = root.getByRole("dialog", { name: "Change load" });
  await expect(dialog).toContainText("second");
  await expect(dialog.getByRole("button", { name: "Save" })).toBeEnabled();

  const shown = await root.evaluate(
    () => (window as unknown as { enabledWith: string[] }).enabledWith,
  );
  expect(shown.length).toBeGreaterThan(0);
  expect(shown.filter((text) => text.includes("first"))).toEqual([]);
});

test("a failed refetch keeps the page and the edits", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/overrun/config`);
  const label = root.getByRole("textbox", { name: "Label" });
  await label.fill("half typed");
  await expect(root.getByText("1 change")).toBeVisible();
  const refused = { status: 403, json: { code: "forbidden", detail: "not now" } };
  await root.route("**/api/v1/**", (route) =>
    route.request().method() === "GET" ? route.fulfill(refused) : route.continue(),
  );

  // Returning to the page refetches everything.
  await expect(async () => {
    const refetch = root.waitForResponse(/\/api\/v1\/registries$/, { timeout: 500 });
    await root.evaluate(() =>
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true })),
    );
    await refetch;
  }).toPass();

  await expect(label).toHaveValue("half typed");
  await expect(root.getByText("not now")).toHaveCount(0);
  await expect(root.getByRole("button", { name: "Review changes" })).toBeEnabled();
});

test("a version conflict is shown and keeps the edits", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/overrun/config`);
  const label = root.getByRole("textbox", { name: "Label" });
  await label.fill("mine");
  await root.getByRole("button", { name: "Review changes" }).click();
  await callApi(root, "PATCH", "/r/dev/jobs/overrun/config", { description: "theirs" });

  await root.getByRole("dialog").getByRole("button", { name: "Save" }).click();

  await expect(root.getByText(/has been saved in the meantime/)).toBeVisible();
  await root.getByRole("button", { name: "Load it and keep my edits" }).click();
  await expect(label).toHaveValue("mine");
  await expect(root.getByRole("textbox", { name: "Description" })).toHaveValue("theirs");
  await root.getByRole("button", { name: "Review changes" }).click();
  await root.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await expectNotification(root, /Saved as version/);
});
