import { baseUrl, expect, expectNotification, logIn, submitLogin, test } from "./fixtures";

test("a viewer can see everything and change nothing", async ({ root, browser }) => {
  await root.goto(`${baseUrl()}/accounts`);
  await root.getByRole("button", { name: "Add account" }).click();
  await root.getByLabel("User name").fill("vera");
  await root.getByLabel("Password", { exact: true }).fill("looks at things 1");
  await root.getByRole("button", { name: "Save" }).click();
  await expectNotification(root, "Account vera saved");

  const context = await browser.newContext();
  const vera = await context.newPage();
  await logIn(vera, "vera", "looks at things 1", "/r/dev/jobs/greet");
  await expect(vera.getByRole("heading", { name: "greet", level: 1 })).toBeVisible();
  await expect(vera.getByRole("button", { name: "Trigger", exact: true })).toBeDisabled();
  await expect(vera.getByRole("button", { name: "Disable", exact: true })).toBeDisabled();
  await expect(vera.getByRole("link", { name: "Accounts" })).toHaveCount(0);
  await vera.goto(`${baseUrl()}/r/dev/doctor`);
  await expect(vera.getByText("Requires the role operator")).toBeVisible();

  const { csrfToken } = (await (await vera.request.get(`${baseUrl()}/api/v1/session`)).json()) as {
    csrfToken: string;
  };
  const refused = await vera.request.post(`${baseUrl()}/api/v1/r/dev/jobs/greet/trigger`, {
    headers: { "X-CSRF-Token": csrfToken },
  });
  expect(refused.status()).toBe(403);
  await context.close();
});

test("a change without CSRF token is refused", async ({ root }) => {
  const result = await root.evaluate(async () => {
    const response = await fetch("/api/v1/r/dev/jobs/greet/trigger", { method: "POST" });
    return { status: response.status, problem: (await response.json()) as { code: string } };
  });
  expect(result.status).toBe(403);
  expect(result.problem.code).toBe("csrf");
});

test("a token is shown once, works, and stops working when removed", async ({
  root,
  playwright,
}) => {
  await root.goto(`${baseUrl()}/account`);
  await root.getByLabel("Purpose").fill("nightly export");
  await root.getByRole("button", { name: "Create token" }).click();
  const token = await root.locator("code").filter({ hasText: "ejt_" }).innerText();
  const program = await playwright.request.newContext({
    extraHTTPHeaders: { Authorization: `Bearer ${token}` },
  });
  expect((await program.get(`${baseUrl()}/api/v1/r/dev/jobs`)).status()).toBe(200);

  await root.getByRole("button", { name: "Remove token nightly export" }).click();
  await expectNotification(root, "Token nightly export removed");
  expect((await program.get(`${baseUrl()}/api/v1/r/dev/jobs`)).status()).toBe(401);
});

test("a user without account is offered neither password nor tokens", async ({ root }) => {
  await root.goto(`${baseUrl()}/account`);
  await expect(root.getByRole("button", { name: "Change password" })).toBeVisible();
  // The session of a user who logged in with an external provider.
  await root.route("**/api/v1/session", async (route) => {
    const response = await route.fetch();
    const session = (await response.json()) as { hasAccount: boolean };
    expect(session.hasAccount).toBe(true);
    await route.fulfill({ response, json: { ...session, hasAccount: false } });
  });

  await root.reload();

  await expect(root.getByText("You log in with an external provider")).toBeVisible();
  await expect(root.getByRole("button", { name: "Change password" })).toHaveCount(0);
  await expect(root.getByRole("button", { name: "Create token" })).toHaveCount(0);
});

test("an operator can trigger jobs but not change them", async ({ root, browser }) => {
  await root.goto(`${baseUrl()}/accounts`);
  await root.getByRole("button", { name: "Add account" }).click();
  const form = root.getByRole("dialog");
  await form.getByLabel("User name").fill("otto");
  await form.getByLabel("Password", { exact: true }).fill("steers things 1");
  await form.getByRole("combobox", { name: "all registries" }).click();
  await root.getByRole("option", { name: /^operator/ }).click();
  await form.getByRole("button", { name: "Save" }).click();
  await expectNotification(root, "Account otto saved");

  const context = await browser.newContext();
  const otto = await context.newPage();
  await logIn(otto, "otto", "steers things 1", "/r/dev/jobs/greet");
  await otto.getByRole("button", { name: "Trigger", exact: true }).click();
  await otto.getByRole("dialog").getByRole("button", { name: "Trigger" }).click();
  await expectNotification(otto, /greet: triggered on \d instances?/);
  await otto.getByRole("button", { name: "More" }).click();
  await expect(otto.getByRole("menuitem", { name: "Shut down" })).toBeEnabled();
  await expect(otto.getByRole("menuitem", { name: "Remove" })).toBeDisabled();
  await expect(otto.getByRole("menuitem", { name: "Dump" })).toBeDisabled();

  await otto.goto(`${baseUrl()}/r/dev/jobs/greet/config`);
  await expect(otto.getByText("Requires the role admin")).toBeVisible();
  await expect(otto.getByLabel("Cron")).toBeDisabled();
  await otto.goto(`${baseUrl()}/r/dev/jobs`);
  await expect(otto.getByRole("link", { name: "settle" })).toBeVisible();
  await expect(otto.getByRole("link", { name: "New job" })).toHaveCount(0);
  await expect(otto.getByRole("link", { name: "Accounts" })).toHaveCount(0);

  const { csrfToken } = (await (await otto.request.get(`${baseUrl()}/api/v1/session`)).json()) as {
    csrfToken: string;
  };
  for (const [method, path] of [
    ["PATCH", "/r/dev/jobs/greet/config"],
    ["DELETE", "/r/dev/jobs/greet"],
    ["PUT", "/accounts/otto"],
  ] as const) {
    const refused = await otto.request.fetch(`${baseUrl()}/api/v1${path}`, {
      method,
      data: {},
      headers: { "X-CSRF-Token": csrfToken, "If-Match": "*" },
    });
    expect(refused.status(), `${method} ${path}`).toBe(403);
  }
  await context.close();
});

test("an account gets a new role and password and is removed", async ({ root, browser }) => {
  await root.goto(`${baseUrl()}/accounts`);
  await root.getByRole("button", { name: "Add account" }).click();
  await root.getByLabel("User name").fill("edith");
  await root.getByLabel("Password", { exact: true }).fill("the first one 1");
  await root.getByRole("button", { name: "Save" }).click();
  await expectNotification(root, "Account edith saved");
  const row = root.getByRole("row").filter({ hasText: "edith" });
  await expect(row).toContainText("all registries: viewer");

  await row.getByRole("button", { name: "Edit", exact: true }).click();
  const form = root.getByRole("dialog", { name: "Account edith" });
  await form.getByRole("combobox", { name: "dev" }).click();
  await root.getByRole("option", { name: /^operator/ }).click();
  await form.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("dev: operator");

  const context = await browser.newContext();
  const edith = await context.newPage();
  await logIn(edith, "edith", "the first one 1", "/account");
  await edith.getByLabel("Old password").fill("not this one");
  await edith.getByLabel("New password").fill("the second one 2");
  await edith.getByRole("button", { name: "Change password" }).click();
  await expect(edith.getByText("wrong password")).toBeVisible();
  await edith.getByLabel("Old password").fill("the first one 1");
  await edith.getByRole("button", { name: "Change password" }).click();
  await expectNotification(edith, "Password changed");
  await edith.getByRole("button", { name: "Account edith" }).click();
  await edith.getByRole("menuitem", { name: "Log out" }).click();
  await submitLogin(edith, "edith", "the first one 1");
  await expectNotification(edith, "User name or password is wrong");
  await submitLogin(edith, "edith", "the second one 2");
  await expect(edith.getByRole("heading", { name: "My account" })).toBeVisible();

  await row.getByRole("button", { name: "Remove account edith" }).click();
  const dialog = root.getByRole("dialog", { name: "Remove account edith" });
  await expect(dialog).toContainText("Its user is logged out.");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await expectNotification(root, "Account edith removed");
  await edith.reload();
  await expect(edith.getByRole("button", { name: "Log in" })).toBeVisible();
  await context.close();
});

test("a failure to write the audit log is shown", async ({ root }) => {
  await root.route("**/api/v1/audit*", async (route) => {
    const response = await route.fetch();
    const page = (await response.json()) as Record<string, unknown>;
    await route.fulfill({ response, json: { ...page, problem: "no space left on device" } });
  });
  await root.goto(`${baseUrl()}/audit`);
  await expect(root.getByRole("alert")).toContainText("The audit log cannot be written to disk");
  await expect(root.getByRole("alert")).toContainText("no space left on device");
});
