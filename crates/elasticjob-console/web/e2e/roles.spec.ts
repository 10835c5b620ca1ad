import { expect, home, logIn, said, test } from "./person";

test("a viewer sees everything and changes nothing, whatever they send", async ({
  root,
  browser,
}) => {
  await root.goto(`${home()}/accounts`);
  await root.getByRole("button", { name: "Add account" }).click();
  await root.getByLabel("User name").fill("vera");
  await root.getByLabel("Password", { exact: true }).fill("looks at things 1");
  await root.getByRole("button", { name: "Save" }).click();
  await said(root, "Account vera is stored");

  const context = await browser.newContext();
  const vera = await context.newPage();
  await logIn(vera, "vera", "looks at things 1", "/r/dev/jobs/greet");
  await expect(vera.getByRole("heading", { name: "greet", level: 1 })).toBeVisible();
  await expect(vera.getByRole("button", { name: "Trigger", exact: true })).toBeDisabled();
  await expect(vera.getByRole("button", { name: "Disable", exact: true })).toBeDisabled();
  await expect(vera.getByRole("link", { name: "Accounts" })).toHaveCount(0);
  await vera.goto(`${home()}/r/dev/doctor`);
  await expect(vera.getByText("This takes the role operator")).toBeVisible();

  const { csrfToken } = (await (await vera.request.get(`${home()}/api/v1/session`)).json()) as {
    csrfToken: string;
  };
  const refused = await vera.request.post(`${home()}/api/v1/r/dev/jobs/greet/trigger`, {
    headers: { "X-CSRF-Token": csrfToken },
  });
  expect(refused.status()).toBe(403);
  await context.close();
});

test("a change without the page's token is refused", async ({ root }) => {
  const answer = await root.evaluate(async () => {
    const response = await fetch("/api/v1/r/dev/jobs/greet/trigger", { method: "POST" });
    return { status: response.status, problem: (await response.json()) as { code: string } };
  });
  expect(answer.status).toBe(403);
  expect(answer.problem.code).toBe("csrf");
});

test("a token is shown once, works, and is gone when it is removed", async ({
  root,
  playwright,
}) => {
  await root.goto(`${home()}/account`);
  await root.getByLabel("What it is for").fill("nightly export");
  await root.getByRole("button", { name: "Make token" }).click();
  const token = await root.locator("code").filter({ hasText: "ejt_" }).innerText();
  const program = await playwright.request.newContext({
    extraHTTPHeaders: { Authorization: `Bearer ${token}` },
  });
  expect((await program.get(`${home()}/api/v1/r/dev/jobs`)).status()).toBe(200);

  await root.getByRole("button", { name: "Remove token nightly export" }).click();
  await said(root, "Token nightly export is removed");
  expect((await program.get(`${home()}/api/v1/r/dev/jobs`)).status()).toBe(401);
});

test("whoever has no account here is offered no password and no tokens", async ({ root }) => {
  await root.goto(`${home()}/account`);
  await expect(root.getByRole("button", { name: "Change password" })).toBeVisible();
  // As the server says of somebody who logged in at a provider.
  await root.route("**/api/v1/session", async (route) => {
    const response = await route.fetch();
    const session = (await response.json()) as { hasAccount: boolean };
    expect(session.hasAccount).toBe(true);
    await route.fulfill({ response, json: { ...session, hasAccount: false } });
  });

  await root.reload();

  await expect(root.getByText("You log in elsewhere")).toBeVisible();
  await expect(root.getByRole("button", { name: "Change password" })).toHaveCount(0);
  await expect(root.getByRole("button", { name: "Make token" })).toHaveCount(0);
});
