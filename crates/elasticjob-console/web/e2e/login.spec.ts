import { baseUrl, expect, expectNotification, logIn, submitLogin, test } from "./fixtures";

test("login refuses a wrong password and then opens the requested page", async ({
  page,
  browserErrors,
}) => {
  expect(browserErrors).toEqual([]);
  await page.goto(`${baseUrl()}/r/dev/jobs/greet`);
  await submitLogin(page, "root", "wrong");
  await expect(page.getByRole("alert")).toContainText("User name or password is wrong");

  await submitLogin(page, "root", "root");

  await expect(page.getByRole("heading", { name: "greet", level: 1 })).toBeVisible();
  expect(page.url()).toBe(`${baseUrl()}/r/dev/jobs/greet`);
});

test("an expired session shows the login and then returns to the page", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/servers`);
  await expect(root.getByRole("heading", { name: "Servers" })).toBeVisible();

  await root.context().clearCookies();
  await root.getByRole("link", { name: "Instances" }).click();

  await expect(root.getByText("Your session has expired")).toBeVisible();
  await submitLogin(root, "root", "root");
  await expect(root.getByRole("heading", { name: "Instances" })).toBeVisible();
  expect(root.url()).toContain("/r/dev/instances");
});

test("the address /login leads to the overview", async ({ page, browserErrors }) => {
  expect(browserErrors).toEqual([]);
  await logIn(page, "root", "root", "/login");
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();

  await page.goto(`${baseUrl()}/login`);
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
});

test("logout ends the session", async ({ page }) => {
  await logIn(page, "root", "root");
  await page.getByRole("button", { name: "Account root" }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();

  await expect(page.getByRole("button", { name: "Log in" })).toBeVisible();
  const response = await page.request.get(`${baseUrl()}/api/v1/session`);
  expect(response.status()).toBe(401);
});

test("a failed logout keeps the page logged in", async ({ root }) => {
  const refused = { status: 409, json: { code: "conflict", detail: "not now" } };
  await root.route("**/api/v1/logout", (route) => route.fulfill(refused));
  const logOut = async () => {
    await root.getByRole("button", { name: "Account root" }).click();
    await root.getByRole("menuitem", { name: "Log out" }).click();
  };
  await logOut();

  await expectNotification(root, "not now");
  await expect(root.getByRole("heading", { name: "Overview" })).toBeVisible();

  await root.unroute("**/api/v1/logout");
  await logOut();
  await expect(root.getByRole("button", { name: "Log in" })).toBeVisible();
});
